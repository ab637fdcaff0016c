"""Counters of width changes: there from 0 on, as long as the region."""

from prometheus_client import generate_latest
from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common.resources import JOB, PARALLEL_REGION
from streamgraft_operator.kit import metrics

NAME = "counted"
SECONDS = 120.0


def counted() -> dict[str, float]:
    """Return what Prometheus reads of the job's region, by the counter's name."""
    lines = generate_latest(metrics.REGISTRY).decode().splitlines()
    ours = [line.rpartition(" ") for line in lines if "region=" in line and NAME in line]
    return {
        name.partition("{")[0].removeprefix("streamgraft_operator_"): float(value)
        for name, _, value in ours
        if "_total{" in name
    }


def test_the_first_width_change_is_an_increase() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, Submission(NAME, stages=1, max_width=3, width=1))
        world.operators.start()
        world.run(SECONDS)
        assert counted() == {"width_changes_total": 0, "rollbacks_total": 0}
        (region,) = world.objects(PARALLEL_REGION)
        name = region["metadata"]["name"]
        world.request("PATCH", PARALLEL_REGION, name, {"spec": {"width": 2}})
        world.run(SECONDS)
        assert counted() == {"width_changes_total": 1, "rollbacks_total": 0}
        world.request("DELETE", JOB, NAME)
        world.run(SECONDS)
        assert world.objects(PARALLEL_REGION) == []
        assert counted() == {}
