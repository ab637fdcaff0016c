"""Where the records of a plan go, and under which names it is noted that they are there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.adl import Operator
from streamgraft_common.encodings import Encoding
from streamgraft_common.pe_metadata import OutputPort, PeMetadata
from streamgraft_common.record_size import LARGEST_RECORD_BYTES
from streamgraft_common.transactions import endpoint_of, sink_of, transactional_id
from streamgraft_pe_runtime.checkpoint_files import incarnation
from streamgraft_pe_runtime.kafka_access import UNASKED, spark_options

FORMAT = "exactly-once-kafka"
"""The sink: scala/exactly_once, docs/use/exactly-once.md."""
MAIN = "MAIN"
"""Name of the target that is shared. No sink has capital letters."""
_LARGE = {"kafka.max.request.size": str(LARGEST_RECORD_BYTES)}
_LINGER = {"kafka.linger.ms": "5"}
"""The default of Kafka's producers since 4.0 (KIP-1030); without it, in real-time mode, nearly each
record is a request of its own."""


@dataclass(frozen=True)
class KafkaTarget:
    """Where records go: the brokers and the options of Spark's sink."""

    name: str
    """That of the sink, whatever its place among others."""
    bootstrap_servers: str
    ledger_topic: str
    """A topic there that lives as long as the target."""
    options: Mapping[str, str] = field(default_factory=dict)
    transactional_id: str | None = None
    """None: records are written at least once."""

    @classmethod
    def at(
        cls,
        bootstrap_servers: str,
        tls: bool,
        ledger_topic: str,
        *,
        name: str = MAIN,
        options: Mapping[str, str] | None = None,
        transactional_id: str | None = None,
    ) -> "KafkaTarget":
        """Return the target at these brokers. `options`: the application's own."""
        every = {**_LARGE, **_LINGER, **UNASKED, **spark_options(tls), **(options or {})}
        return cls(name, bootstrap_servers, ledger_topic, every, transactional_id)

    def at_least_once(self) -> "KafkaTarget":
        """Return the same without a transaction, and so without a name that a shard owns."""
        return replace(self, transactional_id=None)

    @property
    def sink_options(self) -> dict[str, str]:
        """The options of Spark's Kafka sink."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **self.options}


class Targets:
    """The targets of a shard's plan, in the order in which they are asked for."""

    def __init__(self, metadata: PeMetadata, operators: Mapping[str, Operator], shard: int) -> None:
        self._metadata = metadata
        self._operators = operators
        self._shard = shard
        self.all: list[KafkaTarget] = []
        self.encodings: dict[tuple[int, str], Encoding] = {}
        """Of topics that take no JSON objects, by number of the target and name."""

    def index(self, port: OutputPort) -> int:
        """Return the number of the target that an output port writes to."""
        target = self._of(port)
        known = [item.name for item in self.all]
        number = known.index(target.name) if target.name in known else len(known)
        self.all += [target] if number == len(known) else []
        endpoint = endpoint_of(port, self._operators)
        if endpoint and endpoint.encoding:
            self.encodings[number, port.topic] = endpoint.encoding
        return number

    @property
    def every(self) -> list[KafkaTarget]:
        """All targets, and the shared one if nothing is written to it: it has the last word on
        whether a batch is written, also when an edit moves a sink to another target."""
        place = self._metadata.rehearsal
        exact = any(item.transactional_id for item in self.all)
        if place is None or not exact or any(item.name == MAIN for item in self.all):
            return self.all
        pe = self._metadata
        own = names.transactional_id(pe.namespace, pe.job, pe.stage_name, self._shard)
        brokers = place.bootstrap_servers, place.tls
        return [*self.all, KafkaTarget.at(*brokers, place.topic, transactional_id=own)]

    @property
    def one(self) -> KafkaTarget:
        """The target of real-time mode, where one producer writes to all: none of them is another's
        when a sink comes or goes."""
        return replace(self.all[0], name=MAIN)

    @property
    def alike(self) -> bool:
        """Whether one producer could write to all."""
        ways = [(item.sink_options, item.transactional_id is None) for item in self.all]
        return all(way == ways[0] for way in ways)

    def _of(self, port: OutputPort) -> KafkaTarget:
        endpoint = endpoint_of(port, self._operators)
        sink = sink_of(port, self._operators)
        return KafkaTarget.at(
            port.bootstrap_servers,
            port.tls,
            self._ledger_topic(port, sink),
            name=sink or MAIN,
            options=endpoint.options if endpoint else {},
            transactional_id=transactional_id(port, self._operators, self._metadata, self._shard),
        )

    def _ledger_topic(self, port: OutputPort, sink: str) -> str:
        """Return a topic that lives as long as the target, and is at the same brokers."""
        rehearsal, shared = self._metadata.rehearsal, self._metadata.real_time or not sink
        here = rehearsal and rehearsal.bootstrap_servers == port.bootstrap_servers
        return rehearsal.topic if rehearsal and here and shared else port.topic


def options(
    targets: Sequence[KafkaTarget],
    checkpoint: Path,
    life: str,
    *,
    real_time: bool = False,
    told: Sequence[str] = (),
    since: int = 0,
) -> dict[str, str]:
    """Return the options of the sink for a query on a checkpoint.

    `life`: what ledgers say they are of (lost_checkpoints.py); `told`: topics whose records say
    where they come from, if they may come again; `since`: what does was not written before that.
    """
    origins = {}
    if real_time and targets[0].transactional_id is None:
        known = incarnation(checkpoint)
        origins = {"toldTopics": ",".join(told), "incarnation": known, "toldSince": str(since)}
    return {
        **origins,
        "realTime": str(real_time).lower(),
        "checkpointLocation": str(checkpoint),
        "life": life,
        "targets": json.dumps([_options(target) for target in targets]),
    }


def _options(target: KafkaTarget) -> dict[str, str]:
    named = {"name": target.name, **target.sink_options}
    if target.transactional_id is None:
        return named
    return {
        **named,
        "transactionalId": target.transactional_id,
        "ledgerGroup": names.ledger_group(target.transactional_id),
        "ledgerTopic": target.ledger_topic,
    }
