"""Which topics a job makes, which are in its way, and what goes with it: decided without a broker.

What is deleted with a Job is what its status says that it made. Names alone prove nothing: a user
may have a topic `prod.orders.raw` and a Job `orders` in the namespace `prod`, and two Kubernetes
clusters may share one Kafka.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.kube.store import Key
from streamgraft_common.record_size import LARGEST_RECORD_BYTES
from streamgraft_common.resources import MadeInKafka
from streamgraft_operator.graph import PlannedTopic

SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * 24 * 3600 * 1000),
    "retention.bytes": "-1",
    "max.message.bytes": str(LARGEST_RECORD_BYTES),
}
"""Of streams between PEs, whatever the broker's defaults are: a broker that compacts or keeps an
hour would drop records that a PE has yet to read."""


class TopicUnusable(Exception):
    """An existing topic doesn't fit; the message says what to do."""


OTHER_KAFKA = (
    "sources whose topics do not have the same records at the same offsets there need new names"
    " (and allowDroppedState), with which they begin by their starting_offsets"
)
"""What holds for a job that moves to another Kafka cluster."""


class OtherKafka(Exception):
    """Another Kafka cluster answers at a job's brokers; the message says what to do."""

    def __init__(self, servers: str, there: str, before: str) -> None:
        super().__init__(
            f"at {servers} is the Kafka cluster {there} now, and the job's topics and positions are"
            f" in {before}: nothing is made until that is back; to go on in the other one, cancel"
            " the job, and submit it again, with spec.savepoint.name if there is a savepoint;"
            f" {OTHER_KAFKA}"
        )


@dataclass(frozen=True)
class KafkaCluster:
    """A Kafka cluster as it is: the id that its brokers give, and its topics' partitions."""

    id: str
    partitions: Mapping[str, int]


@dataclass(frozen=True)
class TopicChanges:
    """What makes a job's topics exist in one Kafka cluster."""

    create: tuple[PlannedTopic, ...]
    widen: tuple[PlannedTopic, ...]
    """Those with too few partitions."""
    awaited: tuple[str, ...]
    """Missing sources, which are the users'."""


@dataclass(frozen=True)
class Leftovers:
    """What a job has in Kafka."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]


def changes(
    topics: Iterable[PlannedTopic], there: KafkaCluster, made: Collection[str]
) -> TopicChanges:
    """Return what is to be done; `made`: names of the topics that the job has made so far.

    Raises TopicUnusable.
    """
    wanted = list(topics)
    missing = [topic for topic in wanted if topic.name not in there.partitions]
    ours = [topic for topic in wanted if not topic.external and topic.name in there.partitions]
    for topic in ours:
        _check(topic, there.partitions[topic.name], made)
    return TopicChanges(
        create=tuple(topic for topic in missing if not topic.awaited),
        widen=tuple(topic for topic in ours if there.partitions[topic.name] < topic.partitions),
        awaited=tuple(topic.name for topic in missing if topic.awaited),
    )


def _check(topic: PlannedTopic, partitions: int, made: Collection[str]) -> None:
    if topic.name not in made:
        raise TopicUnusable(
            f"topic {topic.name} exists, and this job did not make it: delete it if a former job of"
            " this name left it, or give the job or its stream another name"
        )
    if partitions > topic.partitions:
        raise TopicUnusable(
            f"topic {topic.name} has {partitions} partitions, not {topic.partitions}: what was"
            " added by hand is neither written nor read, and what runs goes on; but a topic can't"
            " get fewer. For another version of the job take a savepoint, cancel the job, and"
            " submit it again from there: its topics are made anew"
        )


def noted(
    old: MadeInKafka | None,
    there: KafkaCluster,
    topics: Iterable[str],
    stages: Iterable[str],
    awaiting: Iterable[str] = (),
) -> MadeInKafka:
    """Return the record with these topics and stages in it; another Kafka begins a new one.

    `awaiting`: those of the topics that nobody writes before an edit is accepted.
    """
    kept = old if old and old.cluster_id == there.id else MadeInKafka(cluster_id=there.id)
    return MadeInKafka(
        cluster_id=there.id,
        topics=sorted({*kept.topics, *topics}),
        stages=sorted({*kept.stages, *stages}),
        awaiting=sorted({*kept.awaiting, *awaiting}),
    )


def left_over(job: Key, made: MadeInKafka, there: KafkaCluster, groups: Iterable[str]) -> Leftovers:
    """Return the topics and consumer groups of a job that are still there."""
    own = [names.consumer_group(*job, stage) for stage in made.stages]
    return Leftovers(
        topics=tuple(name for name in made.topics if name in there.partitions),
        groups=tuple(
            sorted(
                group
                for group in groups
                if any(group == name or _is_ledger(group, name) for name in own)
            )
        ),
    )


def _is_ledger(group: str, stage_group: str) -> bool:
    return group.startswith(f"{stage_group}.") and group == names.ledger_group(
        group.rpartition(".")[0]
    )
