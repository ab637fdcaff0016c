"""The region conductor: one step of a width change, as a pure function of what is there.

A change goes through these phases; each is recognized from the resources alone:

- warming up: the last change has an epoch beyond the status; new channels start, without shards;
- handing over: its epoch is decided and it does not serve yet; shards move one by one;
- removing: it serves; channels that own nothing are deleted in rounds, then it is finished.

At width 0 the region sleeps: no shard is assigned, no channel exists, and records wait in Kafka.

With strategy savepoint the region stops, and a savepoint of it is written, instead of warming
up; new channels come when shards move. While another savepoint of its stages is under way, no
change begins, none decides where shards go, and no channel starts; those that start go on.

Surge first: shards move only to channels that are warm, so nobody waits for a pod to start. If
some are warm long before the others, the change is divided: shards go to those at once, and the
next change brings the others. Where CPU is short, only so many drivers start at a time.
What takes longer than its deadline is rolled back: a change that hands over is followed by another
one, to the width before. Then the width is avoided for a while.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streamgraft_common import names
from streamgraft_common.resources import ParallelRegionStatus, WidthChange
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator import events
from streamgraft_operator.events import Event
from streamgraft_operator.graph.assignment import assign
from streamgraft_operator.kit.conditions import merged
from streamgraft_operator.pe.view import PeView, ReleaseView, ShardView
from streamgraft_operator.region.changes import changed, decided, there_since
from streamgraft_operator.region.conditions import asleep, ready, resizing, skewed
from streamgraft_operator.region.rollback import avoid, avoided, has_lasted, overdue, without
from streamgraft_operator.region.shards import (
    Shards,
    SpecUpdate,
    assigned_width,
    per_round,
    under_way,
)
from streamgraft_operator.region.view import RegionView

__all__ = [
    "LOOK_AGAIN_SECONDS",
    "PeView",
    "RegionDecision",
    "RegionView",
    "ReleaseView",
    "ShardView",
    "step",
]

KEPT_CHANGES = 20
"""Width changes that a region's status remembers."""
PATIENCE_SECONDS = 4.0
"""How long channels that are warm wait for those that are not, so that most changes are one."""
LOOK_AGAIN_SECONDS = 2.0
"""While a width changes: deadlines pass without any event."""
REMOVAL_SECONDS = 1.0
"""Between rounds in which channels are deleted: to end a driver takes CPU that the others need."""


@dataclass(frozen=True)
class RegionDecision:
    """What should be done now.

    Write `status` first, with the resource version of the view (on a conflict drop the decision and
    step again), then record `events`, then apply the rest.
    """

    channels: int
    """PEs of the channels 0 … channels-1 must exist, those of other channels must not."""
    spec_updates: Mapping[int, SpecUpdate]
    """PE id → new `spec.shards` and `spec.epoch`; a PE that has to be created starts with these, or
    no shards."""
    status: ParallelRegionStatus
    events: tuple[Event, ...]
    on_absence: bool = False
    """Whether a shard goes to a PE since nobody is seen to have it, not since its owner said so:
    first ask the API server whether there is a pod that is not in the view."""
    savepoint: str | None = None
    """Savepoint of the region that must exist: the change waits for it."""
    again_in: float | None = None
    """Seconds after which to step again, whatever happens."""


@dataclass(frozen=True)
class _Progress:
    """A status and the events that tell how it came about."""

    status: ParallelRegionStatus
    events: tuple[Event, ...] = ()


def step(view: RegionView) -> RegionDecision:
    """Return what brings the region closer to its wanted width."""
    specs = max((pe.spec_epoch for pe in view.pes), default=0)
    if 0 < view.status.epoch < specs:  # a status older than the PEs: wait for the newer one
        there = max(pe.channel + 1 for pe in view.pes)
        channels = _channels(view, view.status, there)
        again_in = _again_in(view, view.status, channels)
        return RegionDecision(channels, {}, view.status, (), again_in=again_in)
    progress = _advance(view)
    shards = Shards(view, progress.status)
    states = (ready(shards), resizing(shards), *skewed(shards), *asleep(shards))
    status = progress.status.model_copy(
        update={
            "selector": _selector(view),
            "observed_generation": view.generation,
            "changes": progress.status.changes[-KEPT_CHANGES:],
            "conditions": merged(view.status.conditions, states, view.now, view.generation),
        }
    )
    refused = avoided(status, view.width, view.now)
    saving = _saving(status)
    channels = _channels(view, status, 0 if refused or saving else _wanted(view))
    updates = shards.spec_updates(channels)
    return RegionDecision(
        channels,
        updates,
        status,
        progress.events,
        on_absence=shards.rely_on_absence(updates),
        savepoint=saving,
        again_in=_again_in(view, status, channels),
    )


def _wanted(view: RegionView) -> int:
    """Return how many channels are to start; the drivers of those that do are not thrown away."""
    return min(view.width, _existing(view)) if view.held_back else view.width


def _saving(status: ParallelRegionStatus) -> str | None:
    """Return the savepoint that the change under way waits for."""
    change = under_way(status)
    return change.savepoint if change and change.epoch > status.epoch else None


def _selector(view: RegionView) -> str:
    """Return the selector of one pod per channel, for /scale."""
    labels = (
        (names.LABEL_JOB, view.job),
        (names.LABEL_REGION, view.region),
        (names.LABEL_STAGE, 0),
    )
    return ",".join(f"{label}={value}" for label, value in labels)


def _channels(view: RegionView, status: ParallelRegionStatus, wanted: int) -> int:
    """Return how many channels must exist: none goes while it has, or may have, a shard.

    Old owners stay until the new width serves: their releases tell what the change cost. But a
    rollback must end: what does not give back its shards in time is deleted, and they with it.
    """
    change = under_way(status)
    if change and change.rollback and overdue(view, change, view.deadline_seconds):
        return assigned_width(status.assignment)
    busy = (pe.channel + 1 for pe in view.pes if pe.spec_shards or (pe.pod_alive and pe.held))
    old = _going(view, change) if change else 0
    return max(_started(view, status, wanted), assigned_width(status.assignment), old, *busy)


def _started(view: RegionView, status: ParallelRegionStatus, wanted: int) -> int:
    """Return how many of the wanted channels may exist, so that not too many drivers start at a
    time; those that exist stay. Channels with shards count as started, whatever their pods do: one
    that fails again and again keeps no new one from coming."""
    if view.starts is None:
        return wanted
    warm = Shards(view, status).warm(assigned_width(status.assignment), wanted)
    return min(wanted, max(warm + view.starts, _existing(view)))


def _existing(view: RegionView) -> int:
    """Return up to which channel there are PEs."""
    return max((pe.channel + 1 for pe in view.pes if pe.exists), default=0)


def _going(view: RegionView, change: WidthChange) -> int:
    """Return how many channels a change still has use for, or whose round to go has not come.

    Channels that failed go at once, as do all when the region is to sleep.
    """
    if change.serving_at is None:
        return change.from_width
    if change.rollback or change.to_width == 0:
        return 0
    rounds = int(_removing_seconds(view, change.serving_at) / REMOVAL_SECONDS)
    return min(change.from_width - rounds * per_round(view), _existing(view))


def _again_in(view: RegionView, status: ParallelRegionStatus, channels: int) -> float | None:
    """Return the seconds until a deadline is looked at, the next of so many channels are to go, or
    a width that is avoided may be tried again."""
    change = under_way(status)
    if change is None:
        refused = avoided(status, view.width, view.now)
        return from_rfc3339(refused.until) - view.now if refused else None
    if change.serving_at is None or channels <= change.to_width:
        return LOOK_AGAIN_SECONDS
    return REMOVAL_SECONDS - _removing_seconds(view, change.serving_at) % REMOVAL_SECONDS


def _removing_seconds(view: RegionView, serving_at: str) -> float:
    """Return for how long channels have been removed; another replica's clock may be behind."""
    return max(view.now - from_rfc3339(serving_at), 0.0)


def _advance(view: RegionView) -> _Progress:
    """Take the step that is due in the phase that the region is in."""
    status = view.status
    if status.epoch == 0:
        return _Progress(_begun(view))
    change = under_way(status)
    if change is None:
        return _settled(view)
    if change.epoch > status.epoch:
        return _warm_up(view, change)
    if change.serving_at is None:
        return _hand_over(view, change)
    return _remove(view, change)


def _begun(view: RegionView) -> ParallelRegionStatus:
    """Decide the first assignment; if the status was lost, take over what the PEs' specs say."""
    current = {shard: pe.channel for pe in view.pes if pe.stage == 0 for shard in pe.spec_shards}
    width = max(current.values()) + 1 if current else view.width
    assignment = assign(view.max_width, width, current)
    return view.status.model_copy(
        update={
            "width": width,
            "epoch": max((pe.spec_epoch for pe in view.pes), default=0) + 1,
            "assignment": {str(shard): channel for shard, channel in assignment.items()},
        }
    )


def _settled(view: RegionView) -> _Progress:
    """Start a change if another width is wanted and did not fail just before.

    Not while a PE is missing: the answer to its creation may be lost, and it have its shards.
    """
    status = view.status
    width = assigned_width(status.assignment)
    stays = view.parked or view.held_back or avoided(status, view.width, view.now)
    if view.width == width or stays:
        return _Progress(status)
    if Shards(view, status).missing(width):
        return _Progress(status)
    return _begin_change(view, status, events.width_change_started(width, view.width))


def _begin_change(view: RegionView, status: ParallelRegionStatus, event: Event) -> _Progress:
    """Note a change to the wanted width; a narrower one needs no warm-up."""
    # Who falls asleep or wakes up has no shards that would go on at another width.
    between = status.assignment and view.width > 0
    saves = bool(between) and view.strategy == "savepoint"
    region = names.region_name(view.job, view.region)
    change = WidthChange(
        from_width=assigned_width(status.assignment),
        to_width=view.width,
        epoch=status.epoch + 1,
        requested_at=to_rfc3339(view.now),
        since=there_since(view, status),
        savepoint=names.width_savepoint(region, round(view.now)) if saves else None,
    )
    progress = _Progress(status.model_copy(update={"changes": [*status.changes, change]}), (event,))
    if saves or change.to_width > change.from_width:
        return progress
    return _decide(view, progress)


def _warm_up(view: RegionView, change: WidthChange) -> _Progress:
    """Wait for the new channels (or the savepoint), for other wanted widths, for the deadline."""
    status = view.status
    if change.savepoint:
        return _save(view, change, change.savepoint)
    if view.parked or view.held_back:
        return _Progress(status)  # that savepoint began in the same moment, with these owners
    if view.width != change.to_width:
        without = status.model_copy(update={"changes": status.changes[:-1]})
        if view.width == change.from_width:
            return _Progress(without, (events.width_change_withdrawn(view.width),))
        event = events.width_change_retargeted(change.to_width, view.width)
        return _begin_change(view, without, event)
    shards = Shards(view, status)
    cold = shards.cold(change)
    if not cold:
        return _decide(view, _Progress(status))
    warm = shards.warm(change.from_width, change.to_width)
    if warm > change.from_width and has_lasted(view, change.requested_at, PATIENCE_SECONDS):
        event = events.width_change_divided(change.to_width, warm)
        return _decide(view, _Progress(changed(status, change, to_width=warm), (event,)))
    if not overdue(view, change, view.deadline_seconds):
        return _Progress(status)
    why = "; ".join(_why_cold(view, pe) for pe in cold)
    return _failed(view, change, f"not ready in time: {why}")


def _save(view: RegionView, change: WidthChange, name: str) -> _Progress:
    """Wait for the savepoint; then shards move, to the width that is wanted by then."""
    saved = view.savepoints.get(name)
    if saved and saved.phase == "Completed":
        return _decide(view, _Progress(changed(view.status, change, to_width=view.width)))
    if saved and saved.phase == "Failed":
        return _failed(view, change, f"no savepoint: {saved.message}")
    return _Progress(view.status)


def _why_cold(view: RegionView, pe: PeView) -> str:
    name = names.pe_name(view.job, pe.pe_id)
    return f"{name} ({pe.message})" if pe.message else name


def _failed(view: RegionView, change: WidthChange, why: str) -> _Progress:
    """End a change that failed, and avoid its width.

    Of a divided change also the width that was wanted: it would be divided again, to fail again.
    """
    status = changed(view.status, change, finished_at=to_rfc3339(view.now), failure=why)
    entry = avoid(status, change.to_width, why, view.now)
    status = status.model_copy(update={"avoided": [*without(status, change.to_width), entry]})
    if (view.width - change.to_width) * (change.to_width - change.from_width) > 0:
        wanted = avoid(status, view.width, why, view.now)
        status = status.model_copy(update={"avoided": [*without(status, view.width), wanted]})
    seconds = from_rfc3339(entry.until) - view.now
    event = events.width_change_rolled_back(change.from_width, change.to_width, why, seconds)
    return _Progress(status, (event,))


def _roll_back(view: RegionView, change: WidthChange, why: str) -> _Progress:
    """Hand shards back after a hand-over that failed."""
    failed = _failed(view, change, why)
    back = WidthChange(
        from_width=change.to_width,
        to_width=change.from_width,
        epoch=change.epoch + 1,
        requested_at=to_rfc3339(view.now),
        rollback=True,
    )
    status = failed.status.model_copy(update={"changes": [*failed.status.changes, back]})
    return _decide(view, replace(failed, status=status))


def _decide(view: RegionView, progress: _Progress) -> _Progress:
    """Decide the assignment of the last change: from here on shards move."""
    status = decided(view, progress.status)
    change = status.changes[-1]
    event = events.shards_moving(len(change.moved_shards), change.epoch)
    return replace(progress, status=status, events=(*progress.events, event))


def _hand_over(view: RegionView, change: WidthChange) -> _Progress:
    """Note that the new width serves, once every moved shard runs where it belongs."""
    shards = Shards(view, view.status)
    if missing := shards.not_running(change.moved_shards):
        if change.rollback or view.parked or not overdue(view, change, view.deadline_seconds):
            return _Progress(view.status)
        if change.from_width > 0:  # nobody goes back to sleep because some shard does not run
            return _roll_back(view, change, shards.why_not_running(missing))
    cost = shards.cost(change)
    status = changed(
        view.status,
        change,
        serving_at=to_rfc3339(view.now),
        pause_seconds_max=cost.pause_seconds_max,
        unclean_releases=cost.unclean_releases,
    ).model_copy(
        update={"width": change.to_width, "avoided": without(view.status, change.to_width)}
    )
    serving = events.width_serving(change.to_width, cost.pause_seconds_max)
    return _Progress(status, (serving if change.to_width > 0 else events.asleep(),))


def _remove(view: RegionView, change: WidthChange) -> _Progress:
    """Finish once surplus channels are gone, or wanted again."""
    if view.width == change.to_width and any(pe.channel >= change.to_width for pe in view.pes):
        return _Progress(view.status)
    status = changed(view.status, change, finished_at=to_rfc3339(view.now))
    return _Progress(status, (events.width_change_finished(change.to_width),))
