"""`streamgraft kubeconfig`."""

from pathlib import Path
from typing import Any

import yaml

from streamgraft.cli import _output as output
from streamgraft.cli._embedded import running_kubeconfig
from streamgraft.cli._output import CommandError


def run(merge: bool) -> None:
    """Print the path, or merge the file into ~/.kube/config."""
    path = running_kubeconfig()
    if path is None:
        raise CommandError("the embedded environment is not up: run `streamgraft up`")
    if not merge:
        output.say(str(path))
        return
    target = Path.home() / ".kube" / "config"
    existing = yaml.safe_load(target.read_text()) if target.is_file() else None
    document = merged(existing or {}, yaml.safe_load(path.read_text()))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600)
    target.write_text(yaml.safe_dump(document, sort_keys=False))
    name = document["contexts"][-1]["name"]
    output.say(f"{target}: context {name} added; use it with `kubectl --context {name}`")


def merged(into: dict[str, Any], embedded: dict[str, Any]) -> dict[str, Any]:
    """Return a kubeconfig with the embedded one's only context added, or put up to date.

    All its parts get the context's name; the current context stays, if there is one.
    """
    context = embedded["contexts"][0]
    name = context["name"]
    entries = {
        "clusters": {"cluster": embedded["clusters"][0]["cluster"]},
        "users": {"user": embedded["users"][0]["user"]},
        "contexts": {"context": {**context["context"], "cluster": name, "user": name}},
    }
    result = {"apiVersion": "v1", "kind": "Config", **into}
    for kind, entry in entries.items():
        others = [item for item in into.get(kind) or [] if item["name"] != name]
        result[kind] = [*others, {"name": name, **entry}]
    result["current-context"] = into.get("current-context") or name
    return result
