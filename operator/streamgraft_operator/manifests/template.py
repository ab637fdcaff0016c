"""Merging what the operator makes into a user's pod template."""

from typing import Any

_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "ports": "containerPort",
}
"""Kubernetes' own merge keys: entries with equal ones are the same thing."""
_OURS = ("nodeSelectorTerms",)
"""Lists of which ours stays alone: a node would have to meet one entry only, so one of theirs."""
_WHOLE = ("env", "volumes", "volumeMounts")
"""Lists whose entries are replaced, not merged: half of one and half of another is neither."""


def merged(template: Any, ours: Any, field: str = "") -> Any:
    """Return `template` with `ours` in it; ours wins. `field` is the name of the field merged.

    Objects are merged field by field, lists of things that have a merge key thing by thing, other
    lists are appended.
    """
    if isinstance(template, dict) and isinstance(ours, dict):
        both = {name: merged(template[name], ours[name], name) for name in template if name in ours}
        return {**template, **ours, **both}
    if isinstance(template, list) and isinstance(ours, list):
        return _merged_lists(template, ours, field)
    return ours


def _merged_lists(template: list[Any], ours: list[Any], field: str) -> list[Any]:
    key = _KEYS.get(field)
    if field in _OURS:
        return ours
    if key is None:
        return [*template, *ours]
    mine = {item[key]: item for item in ours}
    theirs = {item.get(key): item for item in template}
    result = [
        merged(item, mine.pop(name))
        if name in mine and field not in _WHOLE
        else mine.pop(name, item)
        for name, item in theirs.items()
    ]
    return [*result, *mine.values()]
