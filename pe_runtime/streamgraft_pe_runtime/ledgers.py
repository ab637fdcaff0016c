"""What Kafka has of a stage's batches: the ledgers that its queries note them in.

A ledger (scala/exactly_once) is a committed offset of a consumer group, so all can look at it.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamgraft_common import names
from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_pe_runtime.kafka_access import client_settings
from streamgraft_pe_runtime.targets import MAIN, KafkaTarget, Targets

log = logging.getLogger(__name__)

_NO_RIGHT = "AuthorizationException"


class NotAllowed(Exception):
    """The user has no right to look."""


@dataclass(frozen=True)
class Entry:
    """The last batch of a ledger."""

    incarnation: str
    """That of the checkpoint that the ledger is of."""
    batch: int
    plan: str = ""


Begun = tuple[int, str]
"""A ledger that a query has begun: its first shard, under whose name it writes, and incarnation."""


@dataclass(frozen=True)
class Ledgers:
    """The ledgers that a stage may have. All calls block, and raise OSError."""

    session: SparkSession
    pe: PeMetadata
    operators: Mapping[str, Operator]
    """By name."""

    def every(self) -> Iterator[tuple[str, Entry]]:
        """Give the entries of all shards, at the job's brokers and at those of its sinks, and
        where each is. Raises NotAllowed."""
        for place, found in self._read(map(self._targets, range(self.pe.shard_count))):
            for group, entries in found.items():
                yield from ((f"consumer group {group} at {place}", it) for it in entries.values())

    def shared(self, begun: Collection[Begun]) -> dict[Begun, Entry]:
        """Return what is in the ledgers that all sinks share, as far as they are there: what the
        query noted last, or what another one has noted in its place."""
        targets = {
            shard: [target for target in self._targets(shard) if target.name == MAIN]
            for shard, _ in begun
        }
        noted: dict[str, dict[str, Entry]] = {}
        try:
            for _, found in self._read(targets.values()):
                noted |= found
        except NotAllowed as error:
            log.info("ledgers can't be looked at: %s", error)  # the sink says so better
        latest: dict[Begun, Entry] = {}
        for shard, incarnation in begun:
            for target in targets[shard]:
                entries = noted.get(names.ledger_group(target.transactional_id or ""), {})
                entry = latest_of(entries, incarnation, target.ledger_topic)
                latest |= {(shard, incarnation): entry} if entry else {}
        return latest

    def _targets(self, shard: int) -> list[KafkaTarget]:
        targets = Targets(self.pe, self.operators, shard)
        for port in self.pe.outputs:
            targets.index(port)
        return [target for target in targets.every if target.transactional_id]

    def _read(
        self, targets: Iterable[Iterable[KafkaTarget]]
    ) -> Iterator[tuple[str, dict[str, dict[str, Entry]]]]:
        """Give the entries of ledgers by group and topic, for each of the brokers."""
        groups: dict[tuple[str, tuple[tuple[str, str], ...]], set[str]] = {}
        for target in (target for some in targets for target in some):
            brokers = target.bootstrap_servers, tuple(sorted(target.options.items()))
            group = names.ledger_group(target.transactional_id or "")
            groups.setdefault(brokers, set()).add(group)
        for (place, options), wanted in groups.items():
            yield place, _offsets(self.session, place, dict(options), wanted)


def latest_of(entries: Mapping[str, Entry], incarnation: str, topic: str) -> Entry | None:
    """Return the last entry of an incarnation, or that which is in its place.

    As the sink does (Ledger.scala). `entries`: by topic; `topic`: that of the ledger now.
    """
    own = (entry for entry in entries.values() if entry.incarnation == incarnation)
    return max(own, key=lambda entry: entry.batch, default=entries.get(topic))


def _offsets(
    session: SparkSession, place: str, options: Mapping[str, str], groups: Iterable[str]
) -> dict[str, dict[str, Entry]]:
    jvm: Any = session._jvm
    client = {"bootstrap.servers": place, **client_settings(options)}
    ledgers = jvm.org.apache.spark.sql.kafka010.exactlyonce.Ledgers
    try:
        lines = ledgers.read(jvm.java.util.HashMap(client), ",".join(groups)).splitlines()
    except Py4JJavaError as error:
        told = str(error.java_exception)
        if _NO_RIGHT in told:
            raise NotAllowed(told) from error
        raise OSError(f"the ledgers at {place} can't be read: {told}") from error
    found: dict[str, dict[str, Entry]] = {}
    for line in lines:
        group, topic, batch, *noted = line.split(" ", maxsplit=4)
        incarnation, plan = (*noted, "", "")[:2]
        found.setdefault(group, {})[topic] = Entry(incarnation, int(batch), plan)
    return found
