"""Another Kafka cluster answers at the addresses of a job's brokers, as after a fail-over."""

from tests.simulation.applications import FOREIGN_TOPIC, Submission
from tests.simulation.faults import submit
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB

SECONDS = 180.0


def kafka_available(world: World) -> tuple[str, str, str]:
    """Return what the Job says of Kafka: status, reason and message."""
    (job,) = world.objects(JOB)
    found: list[Object] = job["status"]["conditions"]
    (said,) = [item for item in found if item["type"] == "KafkaAvailable"]
    return said["status"], said["reason"], said["message"]


def test_nothing_is_made_in_another_cluster_until_that_of_the_positions_is_back() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=2))
        world.operators.start()
        world.run(SECONDS)
        (before,) = world.objects(JOB)
        made, topics = before["status"]["madeInKafka"], dict(world.brokers.topics)
        world.brokers.clusters[made["servers"]] = "mirror"
        for topic in topics.keys() - {FOREIGN_TOPIC}:
            del world.brokers.topics[topic]
        world.run(SECONDS)
        status, reason, message = kafka_available(world)
        assert (status, reason) == ("False", "OtherKafkaCluster")
        assert "is the Kafka cluster mirror now" in message
        assert world.brokers.topics.keys() == {FOREIGN_TOPIC} & topics.keys()
        (meanwhile,) = world.objects(JOB)
        assert meanwhile["status"]["madeInKafka"] == made
        world.brokers.clusters.clear()
        world.brokers.topics.update(topics)
        world.run(SECONDS)
        assert kafka_available(world)[:2] == ("True", "TopicsExist")
        assert is_healthy(world, "job")
