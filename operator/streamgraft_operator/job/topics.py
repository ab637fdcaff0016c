"""The topics of a job: what is missing is made, and on record in the Job's status before."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streamgraft_common.kube import Conflict
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import MadeInKafka, SourceTopic
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError, PlannedTopic, Topology, counted_topics
from streamgraft_operator.job.commands import report
from streamgraft_operator.kafka.client import Brokers, KafkaUnavailable
from streamgraft_operator.kafka.topics import (
    KafkaCluster,
    OtherKafka,
    TopicUnusable,
    changes,
    noted,
)
from streamgraft_operator.kit.conditions import KAFKA_AVAILABLE, SOURCES_AVAILABLE, State
from streamgraft_operator.kit.external_calls import UnderWay
from streamgraft_operator.kit.parsed import job_status
from streamgraft_operator.manifests.metadata import digest

FRESH_SECONDS = 50.0
"""Topics that were there are looked up again after this time: with every resync."""


LONGEST_PAUSE_SECONDS = 10.0
"""Between two attempts to reach Kafka."""

_WRONG = {
    KafkaUnavailable: events.kafka_unavailable,
    OtherKafka: events.other_kafka,
    TopicUnusable: events.topic_unusable,
}


class KafkaAwaited(UnderWay):
    """Kafka has not answered yet; the message has its address."""


Seen = tuple[Sequence[PlannedTopic], Sequence[PlannedTopic], KafkaCluster]
"""Topics of a job in one Kafka cluster, those that were made just now, and how it was before."""


class TopicKeeper:
    """Sees to it that the topics of jobs exist."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen: dict[str, tuple[str, float]] = {}

    async def ensure(self, job: Object, topology: Topology) -> tuple[bool, Object]:
        """Create and check topics; return whether something is wrong (the status says what), and
        the job, whose status says how many partitions the sources have that slots depend on."""
        uid, generation = job["metadata"]["uid"], job["metadata"]["generation"]
        wanted = digest([generation, *(repr(topic) for topic in topology.topics)])
        seen, at = self._seen.get(uid, ("", 0.0))
        if seen == wanted and time.monotonic() < at + FRESH_SECONDS:
            return False, job
        self._seen.pop(uid, None)
        counted = {item.topic: item for item in job_status(job).source_topics}
        try:
            states, event = await self._states(job, topology, counted)
        except UnderWay:
            return True, job
        if event is not None:
            self._context.recorder.record(job, event)
        sources = [counted[name] for name in sorted(counted)]
        write = self._context.write.jobs
        newest = await report(write, key_of(job), states, generation, source_topics=sources)
        if event is None:
            self._seen[uid] = (wanted, time.monotonic())
        return event is not None, newest or job

    async def prepare(self, job: Object, before: Topology, after: Topology) -> None:
        """Make the topics that an edit adds, before anything writes to them or reads them.

        Raises GraphError if that can't be done, KafkaUnavailable, and KafkaAwaited.
        """
        known = set(before.topics)
        if not (added := tuple(topic for topic in after.topics if topic not in known)):
            return
        try:
            await self._create(job, replace(after, topics=added), {}, awaiting=True)
        except (OtherKafka, TopicUnusable) as error:
            raise GraphError(f"the topics for this edit can't be made: {error}") from error
        except KafkaUnavailable as error:
            raise KafkaUnavailable(f"the topics for this edit can't be made: {error}") from error

    async def _states(
        self, job: Object, topology: Topology, counted: dict[str, SourceTopic]
    ) -> tuple[list[State], events.Event | None]:
        try:
            missing = await self._create(job, topology, counted)
        except (KafkaUnavailable, OtherKafka, TopicUnusable) as error:
            text = str(error)
            event = _WRONG[type(error)](text)
            return [State(KAFKA_AVAILABLE, "False", event.reason, text)], event
        states = [State(KAFKA_AVAILABLE, "True", "TopicsExist", "all topics of the job exist")]
        if missing:
            event = events.sources_missing(missing)
            states.append(State(SOURCES_AVAILABLE, "False", event.reason, event.message))
            return states, event
        states.append(State(SOURCES_AVAILABLE, "True", "TopicsExist", "all source topics exist"))
        return states, None

    async def _create(
        self,
        job: Object,
        topology: Topology,
        counted: dict[str, SourceTopic],
        *,
        awaiting: bool = False,
    ) -> list[str]:
        """Create what is missing; return the missing sources, which are the users'. What is seen of
        topics whose partitions count goes into `counted`. `awaiting`: whether nobody writes what is
        new before an edit is accepted."""
        tls = await self._context.kafka_tls.of(job)
        groups: dict[Brokers, list[PlannedTopic]] = {}
        for topic in topology.topics:
            brokers = Brokers(topic.bootstrap_servers, tls if topic.tls else ())
            groups.setdefault(brokers, []).append(topic)
        awaited: list[str] = []
        seen: list[Seen] = []
        for brokers, topics in groups.items():
            there = await look(self._context, job, brokers)
            made = None
            if brokers.servers == self._context.servers_of(job):
                if reads(topology, brokers.servers):
                    _check_cluster(job, there, brokers.servers)
                made = _present(job, there, topics)
            found = changes(topics, there, made.topics if made else ())
            if made is not None:
                new = [topic.name for topic in found.create if not topic.external]
                stages = [pe.stage_name for pe in topology.stages]
                made = noted(made, there, new, stages, new if awaiting else ())
                await self._note(
                    job, made if awaiting else made.without(topic.name for topic in topics)
                )
            await self._context.kafka.change(brokers, found)
            seen.append((topics, found.create, there))
            awaited += found.awaited
        _count(counted, topology, partitions_of(seen))
        return awaited

    async def _note(self, job: Object, made: MadeInKafka) -> None:
        old = job_status(job).made_in_kafka
        made = made.model_copy(update={"servers": self._context.servers_of(job)})
        if old and old.cluster_id != made.cluster_id:
            event = events.topics_in_former_kafka(old.cluster_id, old.topics)
            self._context.recorder.record(job, event)
        generation = job["metadata"]["generation"]
        write = self._context.write.jobs
        if await report(write, key_of(job), [], generation, made_in_kafka=made) is None:
            raise Conflict(409, "Conflict", f"job {job['metadata']['name']} is gone")


async def look(context: Context, job: Object, brokers: Brokers) -> KafkaCluster:
    """Return the cluster at a job's brokers. Raises KafkaUnavailable, or KafkaAwaited."""
    try:
        return await context.external_calls.ask(
            key_of(job),
            "kafka",
            digest([brokers.servers, *map(str, brokers.tls)]),
            lambda: context.kafka.look(brokers),
            server=brokers.servers,
            longest_pause_seconds=LONGEST_PAUSE_SECONDS,
        )
    except UnderWay as error:
        raise KafkaAwaited(f"Kafka at {brokers.servers} has not answered yet") from error


def reads(topology: Topology, servers: str) -> bool:
    """Return whether a job reads topics at some brokers, so that it has positions there. Pure."""
    inputs = (port for pe in topology.stages for port in pe.metadata.inputs)
    return any(port.bootstrap_servers == servers for port in inputs)


def _check_cluster(job: Object, there: KafkaCluster, servers: str) -> None:
    """Raise OtherKafka if positions of a job that runs are of another cluster than that which is
    there: PEs would skip records, and its topics would be made anew for that."""
    status = job_status(job)
    made = status.made_in_kafka
    if made is None or not status.submitted_generation:
        return
    if there.id and made.cluster_id and there.id != made.cluster_id:
        raise OtherKafka(servers, there.id, made.cluster_id)


def partitions_of(clusters: Iterable[Seen]) -> dict[str, int]:
    """Return how many partitions topics have, by name: the most of those of one name. Pure."""
    found: dict[str, int] = {}
    for topics, created, there in clusters:
        new = {topic.name: topic.partitions for topic in created}
        for name in {topic.name for topic in topics}:
            count = there.partitions.get(name, new.get(name, 0))
            found[name] = max(count, found.get(name, 0))
    return found


def _count(
    counted: dict[str, SourceTopic], topology: Topology, partitions: Mapping[str, int]
) -> None:
    """Note the partitions of topics that slots depend on; one that is missing keeps its number."""
    wanted = counted_topics(pe.metadata for pe in topology.stages)
    for name in counted.keys() - wanted:
        del counted[name]
    for name in wanted:
        if count := partitions.get(name):
            counted[name] = SourceTopic(topic=name, partitions=count)


def _present(job: Object, there: KafkaCluster, topics: list[PlannedTopic]) -> MadeInKafka:
    """Return what the job has made in the Kafka that is there.

    A job that an operator without such records submitted has made all of its topics that exist.
    """
    status = job_status(job)
    adopted: list[str] = []
    if status.made_in_kafka is None and status.submitted_generation:
        ours = [topic.name for topic in topics if not topic.external]
        adopted = [name for name in ours if name in there.partitions]
    return noted(status.made_in_kafka, there, adopted, ())
