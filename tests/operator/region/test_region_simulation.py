"""The region conductor in a simulated cluster: chance schedules, stale caches, crashes.

Seeded, so that every failure can be repeated. The world keeps apart what is real (queries that run
in pods), what the API server stores, and what the operator's caches show of it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from streamgraft_common.resources import ParallelRegionStatus
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.pe.view import PeView, ReleaseView, ShardView
from streamgraft_operator.region.rollback import LONGEST_BACKOFF_SECONDS
from streamgraft_operator.region.shards import GATHER_SECONDS, under_way
from streamgraft_operator.region.step import step
from streamgraft_operator.region.view import RegionView

Value = TypeVar("Value")
FIRST_PE = 7
NEVER = 1e9


@dataclass
class Pod:
    """A pod and the queries that really run in it."""

    launch: int
    orphan: bool = False
    """Its ProcessingElement was deleted: it ends at some time, a new PE can't use it."""
    warm: bool = False
    spec: frozenset[int] = frozenset()
    epoch: int = -1
    running: dict[int, ShardView] = field(default_factory=dict)
    releases: dict[int, ReleaseView] = field(default_factory=dict)


@dataclass(frozen=True)
class Pe:
    """A stored ProcessingElement with the last report of a pod (launch 0: none)."""

    shards: frozenset[int]
    epoch: int
    launch: int = 0
    reported_by: int = 0
    ready: bool = False
    applied: int = 0
    held: tuple[tuple[int, ShardView], ...] = ()
    releases: tuple[tuple[int, ReleaseView], ...] = ()


@dataclass(frozen=True)
class Region:
    version: int
    width: int
    status: ParallelRegionStatus


class World:
    """One region with its PEs, pods and the operator's caches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.max_width = self.random.choice([2, 4, 5, 8])
        self.stages = self.random.choice([1, 1, 2])
        joint = self.random.choice([[], [0], [1], [0, 1]])
        self.joint = frozenset(stage for stage in joint if stage < self.stages)
        self.deadline = self.random.choice([NEVER, NEVER, 60.0, 30.0])
        self.sick: set[int] = set()
        self.now = 1_700_000_000.0
        self.region = Region(0, self.random.randint(1, self.max_width), ParallelRegionStatus())
        self.pes: dict[int, Pe] = {}
        self.pods: dict[int, Pod] = {}
        self.seen_region = self.region
        self.seen_pes: dict[int, Pe] = {}
        self.seen_pods: dict[int, int] = {}

    def place(self, pe_id: int) -> tuple[int, int]:
        """Return channel and stage of a PE."""
        return divmod(pe_id - FIRST_PE, self.stages)

    # What pods do.

    def launch(self) -> None:
        """Create a missing pod; the operator knows its own writes at once."""
        if missing := [pe for pe in self.pes if pe not in self.pods]:
            pe_id = self.random.choice(missing)
            pe = replace(self.pes[pe_id], launch=self.pes[pe_id].launch + 1)
            self.pes[pe_id] = pe
            self.pods[pe_id] = Pod(pe.launch)
            self.seen_pods[pe_id] = pe.launch

    def warm_up(self) -> None:
        for pod in self.some_pods():
            pod.warm = True

    def observe(self) -> None:
        """A pod hears of its newest spec."""
        for pe_id, pod in self.some(self.pods):
            if not pod.orphan:
                pod.spec, pod.epoch = self.pes[pe_id].shards, self.pes[pe_id].epoch

    def start(self) -> None:
        """A warm pod starts a shard of its spec; it reports only later."""
        for pe_id, pod in self.some(self.pods):
            for shard in sorted(pod.spec - pod.running.keys())[:2] if pod.warm else ():
                self.check_single_owner(pe_id, shard)
                pod.running[shard] = ShardView("Starting", pod.epoch, self.now, None)

    def commit(self) -> None:
        for pe_id, pod in self.some(self.pods):
            if pe_id in self.sick:
                continue
            for shard, held in pod.running.items():
                first = held.first_batch_at or self.now
                pod.running[shard] = replace(held, state="Running", first_batch_at=first)

    def stop(self) -> None:
        """A pod stops what its spec no longer has; only shards that move may be stopped."""
        for pod in self.some_pods():
            for shard in sorted(pod.running.keys() - pod.spec)[:1]:
                assert any(shard in change.moved_shards for change in self.region.status.changes)
                del pod.running[shard]
                pod.releases[shard] = ReleaseView(pod.epoch, self.now, self.now, clean=True)

    def report(self) -> None:
        for pe_id, pod in self.some(self.pods):
            if not pod.orphan:
                applied = pod.epoch if pod.running.keys() == pod.spec else self.pes[pe_id].applied
                self.pes[pe_id] = replace(
                    self.pes[pe_id],
                    reported_by=pod.launch,
                    ready=pod.warm,
                    applied=applied if self.pes[pe_id].reported_by == pod.launch else -1,
                    held=tuple(pod.running.items()),
                    releases=tuple(pod.releases.items()),
                )

    def sicken(self) -> None:
        """What runs on a PE from now on never gets to its first batch."""
        if self.pods:
            self.sick.add(self.random.choice(list(self.pods)))

    def heal(self) -> None:
        if self.random.random() < 0.02:
            self.sick.clear()

    def crash(self) -> None:
        if self.pods:
            del self.pods[self.random.choice(list(self.pods))]

    def end_orphans(self) -> None:
        self.pods = {pe_id: pod for pe_id, pod in self.pods.items() if not pod.orphan}

    # What the user does, and what the operator sees and does.

    def resize(self) -> None:
        width = self.random.randint(0, self.max_width)
        self.region = replace(self.region, version=self.region.version + 1, width=width)

    def delete_pe(self) -> None:
        """A user deletes a ProcessingElement; its pod ends some time later."""
        if self.pes:
            self.delete(self.random.choice(list(self.pes)))

    def delete(self, pe_id: int) -> None:
        self.pes.pop(pe_id, None)
        if pe_id in self.pods:
            self.pods[pe_id].orphan = True

    def see_region(self) -> None:
        self.seen_region = self.region

    def see_pes(self) -> None:
        for pe_id in [pe_id for pe_id in self.seen_pes if pe_id not in self.pes]:
            del self.seen_pes[pe_id]
        for pe_id, pe in self.some(self.pes):
            self.seen_pes[pe_id] = pe

    def see_pods(self) -> None:
        self.seen_pods = {pe_id: pod.launch for pe_id, pod in self.pods.items()}

    def view(self) -> RegionView:
        return RegionView(
            job="job",
            region="region",
            generation=1,
            width=self.seen_region.width,
            max_width=self.max_width,
            stages=self.stages,
            first_pe_id=FIRST_PE,
            status=self.seen_region.status,
            pes=tuple(self.pe_view(pe_id) for pe_id in {**self.seen_pes, **self.seen_pods}),
            now=self.now,
            deadline_seconds=self.deadline,
            may_sleep=True,
            joint=self.joint,
        )

    def pe_view(self, pe_id: int) -> PeView:
        channel, stage = self.place(pe_id)
        alive = pe_id in self.seen_pods
        if pe_id not in self.seen_pes:
            return PeView(pe_id, channel, stage, exists=False, pod_alive=alive)
        pe = self.seen_pes[pe_id]
        current = self.seen_pods.get(pe_id) == pe.reported_by
        return PeView(
            pe_id,
            channel,
            stage,
            exists=True,
            spec_shards=pe.shards,
            spec_epoch=pe.epoch,
            held=dict(pe.held) if current else {},
            releases=dict(pe.releases),
            ready=pe.ready and current,
            applied_epoch=pe.applied if current else 0,
            pod_alive=alive,
            launch_count=pe.launch,
        )

    def conduct(self) -> None:
        """One step of the region controller, which writes as it does."""
        decision = step(self.view())
        if decision.status != self.seen_region.status:
            if self.region.version != self.seen_region.version:
                return
            self.region = Region(self.region.version + 1, self.region.width, decision.status)
            self.seen_region = self.region
        for pe_id, (shards, epoch) in decision.spec_updates.items():
            assert 0 <= pe_id - FIRST_PE < self.max_width * self.stages
            self.check_joint_query(pe_id, shards)
            self.write_spec(pe_id, shards, epoch)
        wanted = range(FIRST_PE, FIRST_PE + decision.channels * self.stages)
        for pe_id in wanted:
            if pe_id not in self.seen_pes and pe_id not in self.pes:
                self.pes[pe_id] = Pe(*decision.spec_updates.get(pe_id, (frozenset(), 0)))
                self.seen_pes[pe_id] = self.pes[pe_id]
        for pe_id in [pe_id for pe_id in self.seen_pes if pe_id not in wanted]:
            self.delete(pe_id)
            self.seen_pes.pop(pe_id)

    def write_spec(self, pe_id: int, shards: frozenset[int], epoch: int) -> None:
        pe = self.pes.get(pe_id)
        if pe is None or pe_id not in self.seen_pes or pe.epoch > epoch:
            return
        channel, _ = self.place(pe_id)
        for shard in pe.shards - shards:
            assigned = self.region.status.assignment.get(str(shard))
            assert assigned != channel, "an unmoved shard stops"
        self.pes[pe_id] = replace(pe, shards=shards, epoch=epoch)
        self.seen_pes[pe_id] = self.pes[pe_id]

    # Chance and truth.

    def some(self, items: dict[int, Value]) -> list[tuple[int, Value]]:
        """Return a chance part of the items, in a chance order."""
        return self.random.sample(list(items.items()), self.random.randint(0, len(items)))

    def some_pods(self) -> list[Pod]:
        return [pod for _, pod in self.some(self.pods)]

    def check_single_owner(self, pe_id: int, shard: int) -> None:
        _, stage = self.place(pe_id)
        for other, pod in self.pods.items():
            if other != pe_id and self.place(other)[1] == stage:
                assert shard not in pod.running, f"PE {pe_id} and {other} run shard {shard}"

    def check_joint_query(self, pe_id: int, shards: frozenset[int]) -> None:
        """The query of a joint stage stops once for a change, and starts once within seconds."""
        channel, stage = self.place(pe_id)
        if stage not in self.joint:
            return
        status = self.seen_region.status
        assigned = {int(shard) for shard, owner in status.assignment.items() if owner == channel}
        assert shards <= assigned, "a shard of a joint query waits for its round"
        seen = self.seen_pes.get(pe_id)
        came = shards - (seen.shards if seen else frozenset())
        change = under_way(status)
        if came and shards < assigned and change and change.decided_at:
            waited = self.now - from_rfc3339(change.decided_at)
            assert waited >= GATHER_SECONDS, "a joint query starts again for some of its shards"

    def settled(self) -> bool:
        """Return whether the wanted width serves, with nothing left to do."""
        status = self.region.status
        conditions = {item.type: item.status for item in status.conditions}
        places = {self.place(pe_id) for pe_id in self.pes}
        width = range(self.region.width)
        return (
            conditions
            == {"Ready": "True", "Resizing": "False", "Asleep": str(not self.region.width)}
            and status.width == self.region.width
            and self.region.width == max(status.assignment.values(), default=-1) + 1
            and places == {(channel, stage) for channel in width for stage in range(self.stages)}
            and self.pods.keys() == self.pes.keys()
            and all(
                pod.running.keys()
                == {int(s) for s, ch in status.assignment.items() if ch == self.place(pe_id)[0]}
                for pe_id, pod in self.pods.items()
            )
        )


LIFE: tuple[Callable[[World], None], ...] = (
    World.launch,
    World.warm_up,
    World.observe,
    World.start,
    World.commit,
    World.stop,
    World.heal,
    World.report,
    World.end_orphans,
    World.see_region,
    World.see_pes,
    World.see_pods,
    World.conduct,
)
FAULTS = (World.resize, World.resize, World.crash, World.sicken, World.delete_pe)


@pytest.mark.parametrize("block", range(10))
def test_one_owner_always_and_convergence_in_the_end(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        world = World(seed)
        for _ in range(600):
            faulty = world.random.random() < 0.03
            world.random.choice(FAULTS if faulty else LIFE)(world)
            world.now += 0.5
        converge(world, seed)


def converge(world: World, seed: int) -> None:
    """Let time pass without faults until the wanted width serves."""
    world.deadline = NEVER
    world.sick.clear()
    world.now += 2 * LONGEST_BACKOFF_SECONDS
    for _ in range(6000):
        world.random.choice(LIFE)(world)
        world.now += 0.5
        if world.settled() and nothing_to_do(world):
            return
    pytest.fail(f"seed {seed} does not converge: {world.region}, {world.pes}")


def nothing_to_do(world: World) -> bool:
    """Return whether a step that sees the newest state changes nothing."""
    world.see_region()
    world.see_pods()
    world.seen_pes = dict(world.pes)
    view = world.view()
    decision = step(view)
    return (decision.status, decision.spec_updates, decision.events) == (view.status, {}, ())
