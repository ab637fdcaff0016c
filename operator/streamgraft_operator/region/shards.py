"""Shards on their way: who may have them now, and what the way cost.

The hand-over rule (docs/develop/contracts.md): a shard enters a PE's spec only when no other PE of
its stage has it in its spec, and none holds it unless its pod is gone. One addition closes a gap:
the old owner may have read its old spec and not yet have reported the shard that it is about to
start. So a moved shard is free only once its release was recorded in this epoch, or once every PE
that may have owned it has applied its newest spec or has no pod. A PE's spec gets a new epoch only
with new shards: PEs that a change does not concern are not written.

Shards move one after another: each of them then has the CPU to itself while it starts, and stands
still only for that long. The others run where they were until their round comes. In stages where a
channel has one query for all its shards they move at once, and the query stops and starts once.
Stages meet in Kafka, by shard, so none has to wait for another one of its channel.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from streamgraft_common.resources import ParallelRegionStatus, WidthChange
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.pe.view import PeView, ReleaseView, ShardView
from streamgraft_operator.region.view import RegionView

ROUNDS = 8
"""A region's shards move in so many rounds, at least one in each; its channels go in as many."""
GATHER_SECONDS = 4.0
"""How long a PE with one query for all its shards waits for those that are still on their way."""
_LONG_BATCH = (
    "its last batch in channel {} has not ended: spark.streamgraft.maxOffsetsPerTrigger bounds one"
)
SpecUpdate = tuple[frozenset[int], int]
"""New `spec.shards` and `spec.epoch` of a PE."""


def per_round(view: RegionView) -> int:
    """Return how many shards may be on their way at a time, how many channels go at a time."""
    return max(1, view.max_width // ROUNDS)


@dataclass(frozen=True)
class Cost:
    """What the hand-over of all moved shards cost."""

    pause_seconds_max: float | None
    """None if no old owner is left to tell when its last batch was."""
    unclean_releases: int


@dataclass(frozen=True)
class Shards:
    """The shards of a region, as `status` assigns them and the PEs hold them."""

    view: RegionView
    status: ParallelRegionStatus

    def spec_updates(self, channels: int) -> dict[int, SpecUpdate]:
        """Return what to write into the specs of PEs, those about to be created included.

        Only where the shards differ.
        """
        pes = (pe for channel in range(channels) for pe in self._channel(channel))
        return {
            pe.pe_id: (allowed, self.status.epoch)
            for pe in pes
            if (allowed := self._allowed(pe)) != pe.spec_shards or not pe.exists
        }

    def rely_on_absence(self, updates: Mapping[int, SpecUpdate]) -> bool:
        """Return whether a shard is given to a PE although no old owner has reported its release.

        Nobody is seen to have it then, as far as caches show.
        """
        return any(
            self._release(shard, pe.stage) is None
            for pe in (self._by_id(pe_id) for pe_id in updates)
            for shard in updates[pe.pe_id][0] - pe.spec_shards
        )

    def _by_id(self, pe_id: int) -> PeView:
        return self.pe(*divmod(pe_id - self.view.first_pe_id, self.view.stages))

    def pe(self, channel: int, stage: int) -> PeView:
        """Return a PE by its place, existing or not."""
        if pe := self._by_place.get((channel, stage)):
            return pe
        pe_id = self.view.first_pe_id + channel * self.view.stages + stage
        return PeView(pe_id, channel, stage, exists=False)

    @cached_property
    def _by_place(self) -> Mapping[tuple[int, int], PeView]:
        return {(pe.channel, pe.stage): pe for pe in self.view.pes}

    def missing(self, width: int) -> bool:
        """Return whether some PE of so many channels does not exist."""
        return not all(pe.exists for channel in range(width) for pe in self._channel(channel))

    def owner(self, shard: int, stage: int) -> PeView | None:
        """Return the PE to which a shard is assigned; None if the region is to sleep."""
        channel = self.status.assignment.get(str(shard))
        return None if channel is None else self.pe(channel, stage)

    def held(self, shard: int, stage: int) -> ShardView | None:
        """Return what the owner says of a shard; None if it does not have it."""
        owner = self.owner(shard, stage)
        return owner.held.get(shard) if owner else None

    def arrived(self, shard: int, stage: int) -> bool:
        """Return whether the owner has committed a batch of the shard; without an owner, whether
        nobody has it any more."""
        if self.owner(shard, stage) is None:
            return self._free(shard, stage)
        held = self.held(shard, stage)
        return held is not None and held.state == "Running" and held.first_batch_at is not None

    def not_running(self, shards: Iterable[int]) -> list[int]:
        """Return those that do not run in every stage."""
        return self._not_running(shards, range(self.view.stages))

    def _not_running(self, shards: Iterable[int], stages: Sequence[int]) -> list[int]:
        return [
            shard for shard in shards if not all(self.arrived(shard, stage) for stage in stages)
        ]

    def why_not_running(self, shards: Iterable[int]) -> str:
        """Return what the owners of shards say of those that do not run."""
        reasons = []
        for shard in shards:
            why = (self._why_not_running(shard, stage) for stage in range(self.view.stages))
            said = next(filter(None, why), "")
            reasons.append(f"shard {shard}" + (f" ({said})" if said else ""))
        return f"not running in time: {', '.join(reasons)}"

    def _why_not_running(self, shard: int, stage: int) -> str:
        """Return what the owner of a shard says, or what keeps the shard from it, if known."""
        owner, held = self.owner(shard, stage), self.held(shard, stage)
        if held is not None:
            return held.message
        others = (pe for pe in self._others(shard, stage) if pe.pod_alive and shard in pe.held)
        if before := next(others, None):
            return _LONG_BATCH.format(before.channel)
        if owner is not None and owner.exists and not owner.ready:
            return owner.message
        return ""

    def loads(self) -> dict[int, float]:
        """Return how busy each shard is in its busiest stage, where its owners say so."""
        found: dict[int, float] = {}
        for pe in self.view.pes:
            for shard, held in pe.held.items():
                if held.busy is not None:
                    found[shard] = max(found.get(shard, 0.0), held.busy)
        return found

    def behind(self, shard: int) -> bool:
        """Return whether a shard has records waiting, as its owners say."""
        held = (self.held(shard, stage) for stage in range(self.view.stages))
        return any(entry.lag for entry in held if entry)

    def cold(self, change: WidthChange) -> list[PeView]:
        """Return the PEs of a wider region that can't take shards at once."""
        new = range(change.from_width, change.to_width)
        return [pe for channel in new for pe in self._channel(channel) if not _is_warm(pe)]

    def warm(self, first: int, width: int) -> int:
        """Return up to which width, at most `width`, all channels from `first` on are warm."""
        channels = range(first, width)
        cold = (item for item in channels if not all(map(_is_warm, self._channel(item))))
        return next(cold, max(first, width))

    def _channel(self, channel: int) -> list[PeView]:
        return [self.pe(channel, stage) for stage in range(self.view.stages)]

    def cost(self, change: WidthChange) -> Cost:
        """Return the cost of a change whose shards have all arrived.

        A region that slept had no shards that could pause.
        """
        if change.from_width == 0:
            return Cost(None, 0)
        pauses: list[float] = []
        clean = 0
        hops = [
            (shard, stage) for shard in change.moved_shards for stage in range(self.view.stages)
        ]
        for shard, stage in hops:
            release = self._stopped(change, shard, stage)
            if release is None:
                continue
            clean += release.clean
            held = self.held(shard, stage)
            if held and held.first_batch_at is not None:
                stopped_at = release.last_batch_at or release.released_at
                pauses.append(max(0.0, held.first_batch_at - stopped_at))
        return Cost(max(pauses, default=None), len(hops) - clean)

    def _stopped(self, change: WidthChange, shard: int, stage: int) -> ReleaseView | None:
        """Return how a moved shard ended under its old owner.

        For a savepoint shards stop before the epoch, also those that stay where they are.
        """
        if change.savepoint is None:
            return self._release(shard, stage)
        found = [pe.releases[shard] for pe in self._stage(stage) if shard in pe.releases]
        return max(found, key=lambda release: release.released_at, default=None)

    def _allowed(self, pe: PeView) -> frozenset[int]:
        """Return the shards that may be in a PE's spec now: what it keeps and what is free."""
        if pe.stage in self.view.parked:
            return frozenset()
        assigned = frozenset(
            int(shard) for shard, channel in self.status.assignment.items() if channel == pe.channel
        )
        if not pe.exists and pe.pod_alive:  # a deleted PE's last pod has to end first
            return frozenset()
        joint = pe.stage in self.view.joint
        kept = (assigned if joint else assigned | self._waiting) & pe.spec_shards
        wanted = assigned - pe.spec_shards
        free = {shard for shard in wanted if self._free(shard, pe.stage)}
        if joint and free != wanted and self._gathers:
            return kept
        return kept | free

    @property
    def _gathers(self) -> bool:
        """Return whether PEs of joint stages wait until all shards that they are to get are free.

        Their queries then start again only once. They do not wait long, since one owner may not
        release its shard.
        """
        change = under_way(self.status)
        if change is None or change.decided_at is None:
            return False
        return self.view.now < from_rfc3339(change.decided_at) + GATHER_SECONDS

    @cached_property
    def _waiting(self) -> frozenset[int]:
        """Return the moved shards whose round has not come in the stages with a query per shard.

        Shards that are handed back or that only stop wait for no round.
        """
        change = under_way(self.status)
        if change is None or change.rollback or not self.status.assignment:
            return frozenset()
        stages = [stage for stage in range(self.view.stages) if stage not in self.view.joint]
        still_there = [
            shard for shard in change.moved_shards if self._is_where_it_was(shard, stages)
        ]
        on_their_way = set(self._not_running(change.moved_shards, stages)).difference(still_there)
        at_a_time = per_round(self.view)
        return frozenset(still_there[max(0, at_a_time - len(on_their_way)) :])

    def _is_where_it_was(self, shard: int, stages: Sequence[int]) -> bool:
        """Return whether a shard is in another PE's spec than its owner's, in all these stages."""
        return all(
            any(shard in pe.spec_shards for pe in self._others(shard, stage)) for stage in stages
        )

    def _others(self, shard: int, stage: int) -> Iterator[PeView]:
        """Yield the PEs of a stage but for the owner of a shard."""
        owner = self.owner(shard, stage)
        return (pe for pe in self._stage(stage) if owner is None or pe.pe_id != owner.pe_id)

    def _free(self, shard: int, stage: int) -> bool:
        """Return whether no PE but its owner has a shard, or can still come to have it."""
        others = list(self._others(shard, stage))
        if any(shard in other.spec_shards for other in others):
            return False
        if any(other.pod_alive and shard in other.held for other in others):
            return False
        change = under_way(self.status)
        if change is None or shard not in change.moved_shards:
            # If the status was lost, a deleted PE's last pod may have what it was assigned before.
            return not any(other.orphaned for other in others)
        if self._release(shard, stage):
            return True
        return all(
            # Of a PE that was deleted only its pod is left, which says nothing any more.
            not other.pod_alive or (other.exists and other.applied_epoch >= other.spec_epoch)
            for other in others
            if _may_lose(change, other.channel)
        )

    def _release(self, shard: int, stage: int) -> ReleaseView | None:
        """Return the release of a shard in this epoch by its old owner.

        A pod that reports nothing yet may have read a spec of before that release, and run it.
        """
        for pe in self._others(shard, stage):
            release = pe.releases.get(shard)
            silent = pe.pod_alive and not pe.ready
            if release and release.epoch >= self.status.epoch and not silent:
                return release
        return None

    def _stage(self, stage: int) -> Iterator[PeView]:
        return (pe for pe in self.view.pes if pe.stage == stage)


def _is_warm(pe: PeView) -> bool:
    """Return whether a PE can take shards at once."""
    return pe.exists and pe.pod_alive and pe.ready


def under_way(status: ParallelRegionStatus) -> WidthChange | None:
    """Return the width change that is not finished, if any."""
    last = status.changes[-1] if status.changes else None
    return last if last and last.finished_at is None else None


def assigned_width(assignment: Mapping[str, int]) -> int:
    """Return the number of channels of an assignment; each has a shard, at least."""
    return max(assignment.values(), default=-1) + 1


def _may_lose(change: WidthChange, channel: int) -> bool:
    """Return whether a channel may have owned shards that moved: assignments are sticky.

    In a rollback shards are on their way from anywhere.
    """
    if change.rollback:
        return True
    if change.to_width > change.from_width:
        return channel < change.from_width
    return channel >= change.to_width
