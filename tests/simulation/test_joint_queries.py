"""Width changes of regions with joint queries, in some of them beside a stage without."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.simulation.applications import OUTSIDE_PES, Submission
from tests.simulation.fake_pe import FakeStage
from tests.simulation.faults import crash_pod, cut_pod, freeze_pod, resize, sicken_pod, submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.invariants import Broken
from tests.simulation.rest import missing
from tests.simulation.test_mutations import Plant
from tests.simulation.world import World

from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.region import controller
from streamgraft_operator.region.shards import Shards
from streamgraft_operator.region.step import RegionDecision, step
from streamgraft_operator.region.view import RegionView
from streamgraft_pe_runtime.protocol import Query

SEEDS = 20
REST_SECONDS = 600.0
JOB = Submission("job", stages=2, max_width=4, width=1)
JOINT = (("work",), ("second",), ("work", "second"))


def change_widths(seed: int) -> bool:
    """Change widths while now and then something befalls a pod; return whether all comes to rest.

    Raises Broken.
    """
    world = World(seed)
    chance = world.chance
    with world.surroundings():
        begin_healthy(world, replace(JOB, joint=chance.choice(JOINT)))
        for _ in range(6):
            resize(world)
            world.run(chance.random() * 20)
            if chance.random() < 0.3:
                chance.choice([crash_pod, cut_pod, freeze_pod, sicken_pod])(world)
            world.run(chance.random() * 40)
        world.run(REST_SECONDS)
        return not list(missing(world))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_shards_go_and_come_at_once_whatever_befalls_pods(seed: int) -> None:
    assert change_widths(seed)


def test_each_query_that_gives_or_takes_shards_starts_anew_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: Counter[int] = Counter()
    start_over = FakeStage._start_over

    async def counted(self: FakeStage, shards: Sequence[int]) -> Query:
        starts[self.metadata.pe_id] += 1
        return await start_over(self, shards)

    monkeypatch.setattr(FakeStage, "_start_over", counted)
    world = World(0)  # in which drivers may start side by side
    world.nodes.tempo = replace(world.nodes.tempo, warm_up=1.0)  # so no change is divided
    with world.surroundings():
        submit(world, replace(JOB, joint=("second",)))
        world.operators.start()
        for width, channels in ((1, [0]), (3, [0, 1, 2]), (4, [0, 3]), (1, [0])):
            starts.clear()
            world.request("PATCH", PARALLEL_REGION, "job-r", {"spec": {"width": width}})
            world.run(120.0)
            assert list(missing(world)) == []
            assert starts == {OUTSIDE_PES + 2 * channel + 1: 1 for channel in channels}


def move_in_rounds_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of joint queries that move in rounds if a stage beside them has a query per shard."""

    def decided(view: RegionView) -> RegionDecision:
        everywhere = len(view.joint) == view.stages
        return step(view if everywhere else replace(view, joint=frozenset()))

    monkeypatch.setattr(controller, "step", decided)


def grant_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A joint query that gets each shard as soon as it is free."""
    monkeypatch.setattr(Shards, "_gathers", False)


@pytest.mark.parametrize(
    ("plant", "broken"),
    [(move_in_rounds_beside_others, "gives up"), (grant_one_by_one, "gets")],
)
def test_it_would_be_seen_if_one_did_not(
    plant: Plant, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Broken, match=f"{broken} shards twice in epoch"):
        all(change_widths(seed) for seed in range(SEEDS))
