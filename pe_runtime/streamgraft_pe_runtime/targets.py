"""Where the records of a plan go, and under which names it is noted that they are there. Pure.

All streams between PEs, and all sinks at the job's own brokers that have no options of their own,
are written in one transaction: the main target. Each other sink has a target of its own, named
after it, so that a change of the one never makes it another's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.adl import KafkaEndpoint, Operator
from streamgraft_common.pe_metadata import OutputPort, PeMetadata
from streamgraft_pe_runtime.transport import UNASKED, spark_options

FORMAT = "exactly-once-kafka"
"""The sink: scala/exactly_once, docs/exactly-once.md."""
MAIN = "main"
_LINGER = {"kafka.linger.ms": "5"}
"""The default of Kafka's producers since 4.0 (KIP-1030); without it, in real-time mode, nearly each
record is a request of its own."""


@dataclass(frozen=True)
class KafkaTarget:
    """Where records go: the brokers and the options of Spark's sink.

    `name` belongs to the sink, not to the target's place among others.
    """

    name: str
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
        every = {**_LINGER, **UNASKED, **spark_options(tls), **(options or {})}
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

    def index(self, port: OutputPort) -> int:
        """Return the number of the target that an output port writes to."""
        target = self._of(port)
        known = [item.name for item in self.all]
        if target.name not in known:
            self.all.append(target)
            return len(known)
        return known.index(target.name)

    def _of(self, port: OutputPort) -> KafkaTarget:
        endpoint = self._operators[port.operator].kafka if port.external else None
        sink = port.operator if endpoint and _stands_alone(endpoint) else ""
        rehearsal = self._metadata.rehearsal
        return KafkaTarget.at(
            port.bootstrap_servers,
            port.tls,
            port.topic if sink or not rehearsal else rehearsal.topic,
            name=sink or MAIN,
            options=endpoint.options if endpoint else {},
            transactional_id=self._transactional_id(sink, endpoint),
        )

    def _transactional_id(self, sink: str, endpoint: KafkaEndpoint | None) -> str | None:
        if endpoint and endpoint.delivery == "at_least_once":
            return None
        metadata = self._metadata
        return names.transactional_id(
            metadata.namespace, metadata.job, metadata.stage_name, self._shard, sink
        )


def options(targets: Sequence[KafkaTarget], checkpoint: Path) -> dict[str, str]:
    """Return the options of the sink for a query on a checkpoint."""
    return {
        "checkpointLocation": str(checkpoint),
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


def _stands_alone(endpoint: KafkaEndpoint) -> bool:
    """Tell whether a sink can't share the main target's producer."""
    return bool(
        endpoint.bootstrap_servers or endpoint.options or endpoint.delivery == "at_least_once"
    )
