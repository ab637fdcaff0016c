"""Width changes of regions in which some stages run one query over all shards of a channel."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import pytest

from streamgraft_common.resources import ParallelRegionStatus
from streamgraft_operator.pe.view import PeView, ReleaseView, ShardView
from streamgraft_operator.region.step import step
from streamgraft_operator.region.view import RegionView

STAGES = 2
SHARDS = 16
AT_A_TIME = 2
"""Shards that may be on their way in a stage with a query per shard: an eighth."""
TICK_SECONDS = 0.1


@dataclass
class FakeRegion:
    """A region whose PEs are always warm, and do one thing at a time: each lets go, or takes up,
    a shard in a tick."""

    joint: frozenset[int]
    width: int = 1
    status: ParallelRegionStatus = field(default_factory=ParallelRegionStatus)
    pes: dict[int, PeView] = field(default_factory=dict)
    now: float = 1_700_000_000.0
    writes: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """How often the shards of each PE were written since the width was changed last, by stage."""
    on_their_way: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """The most shards that stood still in a stage at a time."""

    def change(self, width: int) -> None:
        """Go to another width, and let time pass until nothing is left to do."""
        self.writes.clear()
        self.on_their_way.clear()
        self.width = width
        for _ in range(600):
            before = self.status, dict(self.pes)
            self._step()
            self._work()
            self.now += TICK_SECONDS
            if before == (self.status, self.pes) and self.status.width == width:
                return
        pytest.fail(f"no end: {self.status}")

    def _step(self) -> None:
        view = RegionView(
            "job",
            "r",
            1,
            self.width,
            SHARDS,
            STAGES,
            0,
            self.status,
            tuple(self.pes.values()),
            self.now,
            joint=self.joint,
        )
        decision = step(view)
        self.status = decision.status
        for pe_id, (shards, epoch) in decision.spec_updates.items():
            pe = self.pes.get(pe_id) or _warm(pe_id)
            self.writes[pe.stage][pe.channel] += shards != pe.spec_shards
            self.pes[pe_id] = replace(pe, spec_shards=shards, spec_epoch=epoch)
        there = range(decision.channels * STAGES)
        self.pes = {pe_id: pe for pe_id, pe in self.pes.items() if pe_id in there}

    def _work(self) -> None:
        for pe_id, pe in self.pes.items():
            held, releases = dict(pe.held), dict(pe.releases)
            for shard in sorted(held.keys() - pe.spec_shards)[:1]:
                del held[shard]
                releases[shard] = ReleaseView(pe.spec_epoch, self.now, self.now, clean=True)
            for shard in sorted(pe.spec_shards - held.keys())[:1]:
                held[shard] = ShardView("Running", pe.spec_epoch, self.now, self.now)
            applied = pe.spec_epoch if held.keys() == pe.spec_shards else pe.applied_epoch
            self.pes[pe_id] = replace(pe, held=held, releases=releases, applied_epoch=applied)
        for stage in range(STAGES):
            still = SHARDS - sum(
                len(pe.held.keys() & pe.spec_shards)
                for pe in self.pes.values()
                if pe.stage == stage
            )
            self.on_their_way[stage] = max(self.on_their_way[stage], still)


def _warm(pe_id: int) -> PeView:
    channel, stage = divmod(pe_id, STAGES)
    return PeView(pe_id, channel, stage, exists=True, ready=True, pod_alive=True, launch_count=1)


@pytest.mark.parametrize(
    ("joint", "widths", "affected"),
    [
        (set(), (1, 2), 8),
        ({0}, (1, 2), 16),
        ({1}, (4, 3), 16),
        ({0, 1}, (5, 6), 7),
        ({0}, (12, 16), 8),
        (set(), (12, 16), 4),
        ({0, 1}, (3, 0), 16),
        ({0}, (0, 3), 16),
    ],
)
def test_shards_that_stay_beside_those_that_move_stand_still_with_them(
    joint: set[int], widths: tuple[int, int], affected: int
) -> None:
    """Only where a channel has one query: it starts anew over all that it has."""
    before, after = widths
    region = FakeRegion(frozenset(joint))
    region.change(before)
    region.change(after)
    assert region.status.changes[-1].affected_shards == affected


@pytest.mark.parametrize("joint", [{0}, {1}, {0, 1}, set()])
@pytest.mark.parametrize("widths", [(1, 2), (1, 4), (4, 6), (4, 1), (5, 3)])
def test_each_joint_query_starts_anew_once_and_others_do_not_wait_for_it(
    joint: set[int], widths: tuple[int, int]
) -> None:
    """Each shard of the other stages has its round, whatever moves beside them."""
    before, after = widths
    region = FakeRegion(frozenset(joint))
    region.change(before)
    region.change(after)
    for stage in range(STAGES):
        counts = region.writes[stage].values()
        if stage in joint:
            assert set(counts) == {1}
            assert region.on_their_way[stage] > AT_A_TIME
        else:
            assert max(counts) > 1
            assert region.on_their_way[stage] <= AT_A_TIME
