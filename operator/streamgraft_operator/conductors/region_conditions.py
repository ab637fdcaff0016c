"""What the conditions of a ParallelRegion say."""

from collections.abc import Iterable

from streamgraft_common import names
from streamgraft_operator.conditions import State
from streamgraft_operator.conductors.region_shards import Shards, under_way

SURGE_FAILED = "SurgeFailed"
"""Reason of Resizing=False after a change was given up; holds until another width is wanted."""

LISTED = 10
"""Names in a message, at most."""


def ready(shards: Shards) -> State:
    """Tell whether all shards run, but for those that a width change moves at the moment."""
    change = under_way(shards.status)
    moving = change.moved_shards if change and change.serving_at is None else []
    total = range(shards.view.max_width)
    if missing := [shard for shard in shards.not_running(total) if shard not in moving]:
        running = len(total) - len(missing)
        message = f"{running} of {len(total)} shards run; waiting for shard {_listed(missing)}"
        return State("Ready", "False", "ShardsNotRunning", message)
    return State("Ready", "True", "Serving", f"all {len(total)} shards run")


def resizing(shards: Shards, surge_failed: bool) -> State:
    """Tell where a width change is."""
    change = under_way(shards.status)
    if change is None:
        if surge_failed:
            given_up = shards.status.changes[-1]
            message = (
                f"width {given_up.to_width} was given up, {given_up.from_width} serves: new"
                " channels did not become ready in time; another width starts a new attempt"
            )
            return State("Resizing", "False", SURGE_FAILED, message)
        return State("Resizing", "False", "Settled")
    what = f"width {change.from_width} to {change.to_width}"
    if change.epoch > shards.status.epoch:
        cold = (names.pe_name(shards.view.job, pe.pe_id) for pe in shards.cold(change))
        return State("Resizing", "True", "WarmingUp", f"{what}: waiting for {_listed(cold)}")
    if change.serving_at is None:
        moving = _listed(shards.not_running(change.moved_shards))
        return State("Resizing", "True", "HandingOver", f"{what}: shards on their way: {moving}")
    return State("Resizing", "True", "RemovingChannels", f"{what}: removing surplus channels")


def _listed(items: Iterable[object]) -> str:
    texts = [str(item) for item in items]
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return ", ".join(texts[:LISTED]) + more
