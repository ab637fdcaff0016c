"""Step 4, ports: streams that cross PEs get a Kafka topic, and a port at both ends.

Ports are numbered within a PE, inputs and outputs each from 0.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from streamgraft_common import names
from streamgraft_common.adl import KafkaEndpoint, Operator, Region
from streamgraft_common.pe_metadata import InputPort, OutputPort, OwnTopic
from streamgraft_operator.graph.fusion import Stage
from streamgraft_operator.graph.logical import LogicalModel
from streamgraft_operator.graph.model import GraphError, JobContext, PlannedTopic

_REHEARSAL_PARTITIONS = 2


@dataclass(frozen=True)
class Hop:
    """A stream on its way to the PEs of one region, or to those outside."""

    stream: str
    topic: str
    partitions: int
    key: tuple[str, ...] = ()
    keep_partition: bool = False


class _Brokers(TypedDict):
    bootstrap_servers: str
    tls: bool


def repeating_operators(model: LogicalModel, stages: Iterable[Stage]) -> frozenset[str]:
    """Return the operators of stages that write in real time, at least once."""
    found: set[str] = set()
    for stage in stages:
        operators = [model.operators[name] for name in stage.operators]
        real_time = any(operator.real_time for operator in operators)
        if real_time and any(operator.delivery == "at_least_once" for operator in operators):
            found |= stage.members
    return frozenset(found)


@dataclass(frozen=True)
class Ports:
    """Finds the ports of the stages of one graph."""

    model: LogicalModel
    context: JobContext
    repeating: frozenset[str] = frozenset()
    """Operators whose records may come again."""

    def inputs(self, stage: Stage) -> list[InputPort]:
        """Return the input ports: outside topics and streams of other PEs, in operator order."""
        ports: dict[str, InputPort] = {}
        for operator in self._operators(stage):
            if operator.kind == "kafka-source":
                endpoint = _endpoint(operator)
                ports[operator.outputs[0]] = InputPort(
                    port=len(ports),
                    stream=operator.outputs[0],
                    topic=endpoint.topic,
                    partitions=None,
                    **self._brokers(endpoint),
                    external=True,
                    operator=operator.name,
                    dead_letters=self._dead_letters(endpoint),
                )
            if operator.kind == "import":
                name = names.import_topic(self.context.namespace, self.context.job, operator.name)
                ports[operator.outputs[0]] = InputPort(
                    port=len(ports),
                    stream=operator.outputs[0],
                    topic=name,
                    partitions=None,
                    **self._brokers(None),
                    external=True,
                    imported=True,
                    operator=operator.name,
                )
            for stream in operator.inputs:
                if self.model.producers[stream] in stage.members or stream in ports:
                    continue
                hop = self._hop(stream, stage.region)
                ports[stream] = InputPort(
                    port=len(ports),
                    stream=stream,
                    topic=hop.topic,
                    partitions=hop.partitions,
                    **self._brokers(None),
                    operator=operator.name,
                    repeats=self.model.producers[stream] in self.repeating,
                    may_lose=not self.context.fail_on_data_loss,
                )
        return list(ports.values())

    def outputs(self, stage: Stage) -> list[OutputPort]:
        """Return the output ports: one for each topic that a stream goes to."""
        ports: list[OutputPort] = []
        for operator in self._operators(stage):
            if operator.kind == "kafka-sink":
                endpoint = _endpoint(operator)
                ports += [
                    OutputPort(
                        port=len(ports) + number,
                        stream=stream,
                        topic=endpoint.topic,
                        partitions=None,
                        **self._brokers(endpoint),
                        key=endpoint.key,
                        external=True,
                        operator=operator.name,
                    )
                    for number, stream in enumerate(operator.inputs)
                ]
            if topic := self._export(operator):
                port = OutputPort(
                    port=len(ports),
                    stream=operator.inputs[0],
                    topic=topic.name,
                    partitions=topic.partitions,
                    **self._brokers(None),
                    operator=operator.name,
                )
                ports.append(port)
            for hop in (hop for stream in operator.outputs for hop in self._hops(stage, stream)):
                port = OutputPort(
                    port=len(ports),
                    stream=hop.stream,
                    topic=hop.topic,
                    partitions=hop.partitions,
                    **self._brokers(None),
                    key=list(hop.key),
                    keep_partition=hop.keep_partition,
                    operator=operator.name,
                )
                ports.append(port)
        return ports

    def rehearsal(self, places: Iterable[InputPort | OutputPort | PlannedTopic]) -> OwnTopic | None:
        """Return the topic for rehearsals, if any of the places is at the job's own brokers."""
        ours = self._brokers(None)
        if not any(place.bootstrap_servers == ours["bootstrap_servers"] for place in places):
            return None
        topic = names.rehearsal_topic(self.context.namespace, self.context.job)
        return OwnTopic(topic=topic, **ours)

    def _dead_letters(self, endpoint: KafkaEndpoint) -> OwnTopic | None:
        if endpoint.format == "raw" or endpoint.malformed != "dead_letter":
            return None
        topic = names.dead_letter_topic(self.context.namespace, self.context.job)
        return OwnTopic(topic=topic, **self._brokers(endpoint))

    def topics(self, stages: Iterable[Stage]) -> tuple[PlannedTopic, ...]:
        """Return all topics, each once, by name. Raises GraphError where two uses collide.

        But for those at brokers that only a PE can talk to: nobody could make them, or look.
        """
        found: dict[tuple[str, str], PlannedTopic] = {}
        topics = [topic for stage in stages for topic in self._topics(stage)]
        if rehearsal := self.rehearsal(topics):
            topics.append(_planned(rehearsal, _REHEARSAL_PARTITIONS))
        for topic in topics:
            key = topic.bootstrap_servers, topic.name
            found[key] = _both(found[key], topic) if key in found else topic
        return tuple(
            sorted(found.values(), key=lambda topic: (topic.name, topic.bootstrap_servers))
        )

    def _topics(self, stage: Stage) -> Iterator[PlannedTopic]:
        for operator in self._operators(stage):
            if operator.kafka is not None and not operator.kafka.guarded:
                yield PlannedTopic(
                    name=operator.kafka.topic,
                    partitions=operator.kafka.partitions,
                    external=True,
                    awaited=operator.kind == "kafka-source" and not self.context.create_topics,
                    **self._brokers(operator.kafka),
                )
                if operator.kind == "kafka-source" and (own := self._dead_letters(operator.kafka)):
                    # Elsewhere than at the job's own brokers it stays, like a sink's topic.
                    elsewhere = own.bootstrap_servers != self.context.bootstrap_servers
                    yield _planned(own, 1, external=elsewhere)
            if topic := self._export(operator):
                yield topic
            for hop in (hop for stream in operator.outputs for hop in self._hops(stage, stream)):
                yield PlannedTopic(
                    name=hop.topic,
                    partitions=hop.partitions,
                    external=False,
                    awaited=False,
                    **self._brokers(None),
                )

    def _export(self, operator: Operator) -> PlannedTopic | None:
        """Return the topic that an export operator writes."""
        if operator.exported is None:
            return None
        job = self.context.namespace, self.context.job, self.context.job_uid
        return PlannedTopic(
            name=names.export_topic(*job, operator.name),
            partitions=operator.exported.partitions,
            external=False,
            awaited=False,
            **self._brokers(None),
        )

    def _operators(self, stage: Stage) -> Iterator[Operator]:
        return (self.model.operators[name] for name in stage.operators)

    def _brokers(self, endpoint: KafkaEndpoint | None) -> _Brokers:
        """Return the brokers of an endpoint that names some, else the job's own."""
        if endpoint and endpoint.bootstrap_servers:
            return {"bootstrap_servers": endpoint.bootstrap_servers, "tls": False}
        return {"bootstrap_servers": self.context.bootstrap_servers, "tls": self.context.tls}

    def _hops(self, stage: Stage, stream: str) -> list[Hop]:
        """Return the topics that a stage writes a stream to: one per region, one for the rest."""
        readers = [name for name in self.model.consumers[stream] if name not in stage.members]
        places = [self.model.operators[name].region for name in readers]
        return list(dict.fromkeys(self._hop(stream, place) for place in places))

    def _hop(self, stream: str, place: str | None) -> Hop:
        """Return how a stream gets to the PEs in a region or (None) outside.

        What a region makes keeps its partition, within the region and behind it.
        """
        job = self.context.namespace, self.context.job
        origin = self.model.operators[self.model.producers[stream]].region
        if place is not None and place != origin:
            region = self._regions[place]
            topic = names.topic(*job, stream, place, self._dropped(place))
            return Hop(stream, topic, region.max_width, tuple(region.key))
        topic = names.topic(*job, stream, dropped=self._dropped(origin))
        if origin is None:
            return Hop(stream, topic, self.model.streams[stream].partitions)
        return Hop(stream, topic, self._regions[origin].max_width, keep_partition=True)

    def _dropped(self, region: str | None) -> int:
        return self.context.dropped_stages.get(names.of_region(region), 0) if region else 0

    @cached_property
    def _regions(self) -> dict[str, Region]:
        return {region.name: region for region in self.model.regions}


def _planned(topic: OwnTopic, partitions: int, *, external: bool = False) -> PlannedTopic:
    return PlannedTopic(
        name=topic.topic,
        partitions=partitions,
        external=external,
        awaited=False,
        bootstrap_servers=topic.bootstrap_servers,
        tls=topic.tls,
    )


def _endpoint(operator: Operator) -> KafkaEndpoint:
    if operator.kafka is None:  # the logical model has been checked
        raise AssertionError(f"operator {operator.name} has no Kafka endpoint")
    return operator.kafka


def _both(first: PlannedTopic, second: PlannedTopic) -> PlannedTopic:
    """Return the one topic that two uses need."""
    if first.external != second.external:
        raise GraphError(
            f"topic {first.name} is one of the job's own: let the source or sink use another name"
        )
    return PlannedTopic(
        name=first.name,
        partitions=max(first.partitions, second.partitions),
        bootstrap_servers=first.bootstrap_servers,
        external=first.external,
        awaited=first.awaited and second.awaited,
        tls=first.tls,
    )
