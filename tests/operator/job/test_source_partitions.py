"""Partitions of topics of one name in several Kafka clusters."""

from streamgraft_operator.graph import PlannedTopic
from streamgraft_operator.job.topics import partitions_of
from streamgraft_operator.kafka.topics import KafkaCluster


def topic(servers: str, partitions: int) -> PlannedTopic:
    """Return a source's topic."""
    return PlannedTopic("in", partitions, servers, external=True, awaited=True)


def test_the_most_partitions_of_a_name_count() -> None:
    """Whichever cluster is looked at last; topics that are not the job's there don't."""
    clusters = [
        ([topic("eu:9092", 1)], [], KafkaCluster("eu", {"in": 8, "out": 3})),
        ([topic("us:9092", 2)], [topic("us:9092", 2)], KafkaCluster("us", {})),
        ([], [], KafkaCluster("own", {"in": 12})),
    ]
    assert partitions_of(clusters) == partitions_of(reversed(clusters)) == {"in": 8}
