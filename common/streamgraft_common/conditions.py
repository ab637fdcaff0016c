"""Conditions in the status of a resource: found by their type. Pure."""

from collections.abc import Iterable

from streamgraft_common.resources.base import Condition


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Return whether there is a condition of this type with status True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"
