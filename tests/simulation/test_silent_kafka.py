"""A deleted job waits for a Kafka that does not answer, from when it is asked, and not for ever."""

import math

import pytest
from tests.simulation.applications import FOREIGN_TOPIC, NAMESPACE, Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common.kinds import POD
from streamgraft_common.resources import JOB
from streamgraft_operator.job import deletion
from streamgraft_operator.pe.lost_pods import LOST_SECONDS

PODS_SECONDS = 30.0 + LOST_SECONDS
"""How long pods of a lost node take to end: their grace period, and until they are given up."""
PATIENCE_SECONDS = PODS_SECONDS / 2


def deleted(world: World, silent_seconds: float = 0.0) -> None:
    """Bring a job up, and delete it when all of its nodes are lost, and Kafka as well."""
    submit(world, Submission("job", stages=1, max_width=2, width=2))
    world.operators.start()
    world.run(300)
    for uid in world.nodes.containers:
        world.nodes.lose(uid, math.inf)
    world.brokers.unreliable = 1.0
    world.run(silent_seconds)
    world.request("DELETE", JOB, "job", {})


def topics(world: World) -> list[str]:
    """Return what the job has made in Kafka."""
    ours = set(world.brokers.topics) - {FOREIGN_TOPIC}
    return [topic for topic in ours if topic.startswith(f"{NAMESPACE}.job.")]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "KAFKA_PATIENCE_SECONDS", PATIENCE_SECONDS)


@pytest.mark.parametrize("before", [0.0, 120.0], ids=["since then", "since before"])
def test_the_time_that_pods_take_does_not_count(before: float) -> None:
    world = World(1)
    with world.surroundings():
        deleted(world, before)
        world.run(PODS_SECONDS + 10)
        assert world.objects(JOB)
        assert topics(world)
        assert not world.objects(POD)
        world.brokers.unreliable = 0.0
        world.run(60)
        assert not world.objects(JOB)
        assert not topics(world)


def test_a_job_goes_without_its_topics_in_the_end() -> None:
    world = World(1)
    with world.surroundings():
        deleted(world)
        world.run(PODS_SECONDS + PATIENCE_SECONDS + 30)
        assert not world.objects(JOB)
        assert topics(world)
