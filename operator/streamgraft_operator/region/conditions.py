"""What the conditions of a ParallelRegion say."""

from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.text import listed
from streamgraft_operator.kit.conditions import State
from streamgraft_operator.region.rollback import avoided
from streamgraft_operator.region.shards import Shards, under_way
from streamgraft_operator.region.view import RegionView

SATURATED = 0.9
"""Share of the time from which on a shard's query counts as busy all the time."""
NEGLIGIBLE = 0.1
"""Busy share of all other shards of the channel together that does not matter."""


def ready(shards: Shards) -> State:
    """Report whether all shards run, but for those that a width change moves at the moment."""
    if not shards.status.assignment:
        return State("Ready", "True", "Asleep", "no channels: records wait in Kafka")
    change = under_way(shards.status)
    moving = change.moved_shards if change and change.serving_at is None else []
    total = range(shards.view.max_width)
    if missing := [shard for shard in shards.not_running(total) if shard not in moving]:
        running = len(total) - len(missing)
        message = f"{running} of {len(total)} shards run; waiting for shard {listed(missing)}"
        return State("Ready", "False", "ShardsNotRunning", message)
    return State("Ready", "True", "Serving", f"all {len(total)} shards run{_apart(shards.view)}")


def _apart(view: RegionView) -> str:
    """Return which PEs run a query per shard though one for all was planned, and why the first."""
    if not (apart := [pe for pe in view.pes if pe.apart]):
        return ""
    found = listed(names.pe_name(view.job, pe.pe_id) for pe in apart)
    return f"; a query for each, instead of one per channel, in {found}: {apart[0].apart}"


def asleep(shards: Shards) -> tuple[State, ...]:
    """Report whether a region that may sleep does."""
    known = find(shards.view.status.conditions, "Asleep")
    if not (shards.view.may_sleep or shards.status.asleep or known):
        return ()
    if not shards.status.asleep:
        return (State("Asleep", "False", "Awake"),)
    message = "records wait in Kafka until a width of 1 or more is wanted"
    return (State("Asleep", "True", "NoChannels", message),)


def resizing(shards: Shards) -> State:
    """Tell where a width change is, or why the wanted width is not tried."""
    change = under_way(shards.status)
    view = shards.view
    if change is None:
        if refused := avoided(shards.status, view.width, view.now):
            message = (
                f"width {refused.width} was rolled back, {shards.status.width} serves:"
                f" {refused.reason}; tried again at {refused.until}, any other width at once"
            )
            return State("Resizing", "False", "RolledBack", message)
        return State("Resizing", "False", "Settled")
    back = " again" if change.rollback else ""
    what = f"width {change.from_width} to {change.to_width}{back}"
    if change.epoch > shards.status.epoch and change.savepoint:
        return State("Resizing", "True", "Saving", f"{what}: savepoint {change.savepoint}")
    if change.epoch > shards.status.epoch:
        cold = (names.pe_name(shards.view.job, pe.pe_id) for pe in shards.cold(change))
        return State("Resizing", "True", "WarmingUp", f"{what}: waiting for {listed(cold)}")
    if change.serving_at is None:
        moving = listed(shards.not_running(change.moved_shards))
        return State("Resizing", "True", "HandingOver", f"{what}: shards on their way: {moving}")
    return State("Resizing", "True", "RemovingChannels", f"{what}: removing surplus channels")


def skewed(shards: Shards) -> tuple[State, ...]:
    """Report whether one key group is the bottleneck; nothing while loads are not measured.

    It is if its batches take (nearly) all the time, records wait for it, and the rest of its
    channel hardly works: then no other width gives it more.
    """
    loads = shards.loads()
    if loads.keys() != set(range(shards.view.max_width)) or not shards.status.assignment:
        return ()
    hot = max(loads, key=lambda shard: loads[shard])
    channel = shards.status.assignment[str(hot)]
    beside = (
        load
        for shard, load in loads.items()
        if shard != hot and shards.status.assignment[str(shard)] == channel
    )
    if loads[hot] < SATURATED or sum(beside) > NEGLIGIBLE or not shards.behind(hot):
        return (State("Skewed", "False", "Balanced"),)
    message = (
        f"key group {hot} is busy {loads[hot]:.0%} of the time and behind, its channel does little"
        " else: no width can give it more. Spread its keys: a finer key, or a partial result before"
        " the region"
    )
    return (State("Skewed", "True", "HotKeyGroup", message),)
