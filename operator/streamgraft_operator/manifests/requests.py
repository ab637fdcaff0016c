"""What the scheduler sets aside for a pod. Pure."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from streamgraft_common.quantities import parse


def requested_memory(spec: Mapping[str, Any]) -> int:
    """Return the bytes that a pod of this spec requests; 0 if it requests none.

    As Kubernetes counts: where only a limit is given, that is requested. Containers that run all
    the time add up, those that run before them take what they need one after the other.
    """
    if whole := _memory(spec):
        return math.ceil(whole)
    always, most = Fraction(0), Fraction(0)
    for container in spec.get("initContainers") or ():
        memory = _memory(container)
        most = max(most, always + memory)
        if container.get("restartPolicy") == "Always":
            always += memory
    return math.ceil(max(most, always + sum(map(_memory, spec["containers"]))))


def _memory(item: Mapping[str, Any]) -> Fraction:
    """Return what a container requests, or a pod as a whole."""
    resources = item.get("resources") or {}
    given = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return parse(str(given.get("memory", 0)))
