"""Conditions in the status of a resource: found by their type. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from streamgraft_common.resources.base import Condition

BUNDLE_MISSING = "BundleMissing"
BUNDLE_AWAITED = "BundleAwaited"
WITHOUT_BUNDLE = (BUNDLE_AWAITED, BUNDLE_MISSING)
"""Reasons for which a Job's spec is not accepted yet: its bundle may still come."""


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Return whether there is a condition of this type with status True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod's condition Ready is True."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
