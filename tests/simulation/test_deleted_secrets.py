"""A namespace that is deleted: the Secret with Kafka's credentials goes before the Job."""

from tests.simulation.applications import FOREIGN_TOPIC, NAMESPACE, Submission
from tests.simulation.healthy import begin_healthy
from tests.simulation.world import World

from streamgraft_common.kinds import SECRET
from streamgraft_common.resources import JOB

SECURITY = {"transportSecurity": {"type": "TLS", "kafkaSecret": "kafka"}}


def test_the_topics_of_a_job_go_with_it() -> None:
    world = World(1)
    with world.surroundings():
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"}, "data": {}}
        world.request("POST", SECRET, "", secret)
        begin_healthy(world, Submission("job", stages=1, max_width=2, width=1, extra=SECURITY))
        ours = [name for name in world.brokers.topics if name.startswith(f"{NAMESPACE}.job.")]
        assert len(ours) > 1
        world.request("DELETE", SECRET, "kafka", {})
        world.request("DELETE", JOB, "job", {})
        world.run(120)
        assert world.get(JOB, "job") is None
        left = {name for name in world.brokers.topics if name.startswith(f"{NAMESPACE}.job.")}
        assert left <= {FOREIGN_TOPIC}
