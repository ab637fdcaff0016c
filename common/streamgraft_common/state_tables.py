"""Whether the state of an operator fits its plan: tables of state, compared. Pure.

Spark compares types when a query starts, and not names (StateSchemaCompatibilityChecker): it would
take a sum for a maximum, or users for pages. An edit in place is compared by both. A restore is
compared as Spark does it, so that a column can be renamed by way of a savepoint. What was made with
other submission-time values than the job's is not compared: see state_plans.unproven.
"""

from collections.abc import Callable, Sequence

from streamgraft_common.adl import StateColumn, StateTable
from streamgraft_common.resources.savepoint import SavedStage
from streamgraft_common.state_plans import has_foreign_tables
from streamgraft_common.text import listed

VARIABLES = "transformWithState"
"""How Spark calls operators whose tables are the variables of a processor, each by its name."""

Compared = Callable[[Sequence[StateColumn]], list[str]]
"""What counts of a table's columns."""


def remade(old: SavedStage, new: SavedStage) -> tuple[str, str]:
    """Return the first operator of both whose state has changed, and how; two '' if none has."""
    return _difference(old, new, lambda columns: [str(column) for column in columns])


def retyped(old: SavedStage, new: SavedStage) -> str:
    """Return how the first state of both has changed that Spark would refuse; '' if none has."""
    return _difference(old, new, lambda columns: [column.type for column in columns])[1]


def _difference(old: SavedStage, new: SavedStage, compared: Compared) -> tuple[str, str]:
    for name in new.stateful:
        if name not in old.tables or name not in new.tables:
            continue
        if has_foreign_tables(old, name) or has_foreign_tables(new, name):
            continue
        if why := _changed(old.tables[name], new.tables[name], compared):
            return name, f"the state of operator {name} {why}"
    return "", ""


def _changed(old: Sequence[StateTable], new: Sequence[StateTable], compared: Compared) -> str:
    if all(item.operator.startswith(VARIABLES) for item in (*old, *new)):
        known = {item.name for item in old}
        new = [item for item in new if item.name in known]  # Spark adds variables to what is there
    before, now = ([f"{item.operator} {item.name}".rstrip() for item in it] for it in (old, new))
    if before != now:
        return f"consists of {listed(before)}, and would of {listed(now)}"
    for was, would in zip(old, new, strict=True):
        if compared(was.key) != compared(would.key):
            return f"is kept by ({listed(was.key)}), and would be by ({listed(would.key)})"
        if compared(was.value) != compared(would.value):
            return f"holds ({listed(was.value)}), and would hold ({listed(would.value)})"
    return ""
