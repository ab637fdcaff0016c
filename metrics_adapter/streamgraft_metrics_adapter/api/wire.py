"""Forms that several Kubernetes APIs share: quantities and discovery."""

import math
from collections.abc import Iterable, Sequence
from typing import Any


def quantity(value: float) -> str:
    """Return a finite number as a Kubernetes quantity, to the nearest thousandth."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no quantity")
    milli = round(value * 1000)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def group_list(groups: Iterable[tuple[str, Sequence[str]]]) -> dict[str, Any]:
    """Return what /apis answers; each group with its versions, best first."""
    found = [_group(name, versions) for name, versions in groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    """Return what /apis/<group> answers."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def resource_entry(name: str, namespaced: bool, item: str) -> dict[str, Any]:
    """Return one entry of an APIResourceList; `item`: the kind in the metric's list."""
    return {
        "name": name,
        "singularName": "",
        "namespaced": namespaced,
        "kind": f"{item}List",
        "verbs": ["get"],
    }
