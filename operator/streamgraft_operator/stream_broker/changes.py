"""Changes of Exports and Imports that functions of their own job ask for."""

import json
from collections.abc import Iterable
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import StreamChange
from streamgraft_operator.kit.coordinator import Patch
from streamgraft_operator.kit.parsed import pe_spec

_WITH = {"subscription": {"name": None}}
"""What else changes with a field: an import has either a name or a subscription."""


_TYPES: dict[str, type] = {"properties": dict, "subscription": str, "filter": str}


def requested(element: Object) -> list[StreamChange]:
    """Return the changes that the functions of a PE ask for."""
    changes = [StreamChange.model_validate(item) for item in _written(element)]
    # A pod may write what it likes into its status.
    return [item for item in changes if isinstance(item.value, _TYPES[item.field])]


def newly_requested(old: Object | None, new: Object | None) -> bool:
    """Return whether a PE asks for other changes than before."""
    return _written(old) != _written(new)


def concerned(element: Object) -> Iterable[Key]:
    """Return the Exports and Imports that a PE asks changes of."""
    if not (changes := requested(element)):
        return ()
    namespace, job = key_of(element)[0], pe_spec(element).job
    return [(namespace, names.shared_stream(job, change.operator)) for change in changes]


def to_apply(item: Object, elements: Iterable[Object]) -> Patch | None:
    """Return the patch of an Export or Import with what the PEs of its job ask for.

    Each change is applied once, the earliest first: what users edit later stays.
    """
    annotations = item["metadata"].get("annotations") or {}
    before: dict[str, str] = json.loads(annotations.get(names.ANNOTATION_CHANGES, "{}"))
    asked = [
        (f"{key_of(element)[1]}.{change.field}", change)
        for element in elements
        for change in requested(element)
        if change.operator == item["spec"]["operator"]
    ]
    fresh = [(place, change) for place, change in asked if before.get(place) != change.id]
    if not fresh:
        return None
    spec: dict[str, Any] = {}
    for _, change in sorted(fresh, key=lambda each: (each[1].at, each[1].id)):
        spec |= {change.field: change.value} | _WITH.get(change.field, {})
    if "properties" in spec:  # a merge patch keeps what it does not name
        gone = dict.fromkeys(item["spec"].get("properties") or {})
        spec["properties"] = gone | spec["properties"]
    applied = {place: change.id for place, change in asked}
    text = json.dumps(applied, sort_keys=True)
    return {"metadata": {"annotations": {names.ANNOTATION_CHANGES: text}}, "spec": spec}


def _written(element: Object | None) -> list[Any]:
    status = (element or {}).get("status") or {}
    return (status.get("runtime") or {}).get("streamChanges") or []
