"""Connections to other PEs: whether the topics between them can be reached, in the PE's status.

A PE meets its neighbours in Kafka only. So a stream counts as connected if the brokers of its topic
answered the last question about it. Inputs are asked about all the time, outputs now and then.
Source: cloud native Streams, section 5.1, "reports the status of all PE-to-PE connections".
"""

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Literal

from streamgraft_common.kube import ApiError, KubeClient, Store, Unreachable
from streamgraft_common.kube.store import key_of
from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_common.resources import PROCESSING_ELEMENT, Connection, ProcessingElementStatus
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_pe_runtime.brokers import Brokers, KafkaException
from streamgraft_pe_runtime.kafka_clients import Clients
from streamgraft_pe_runtime.settings import consumer_group

log = logging.getLogger(__name__)

_REPORT_SECONDS = 5.0
"""At most so often the status is written, and only if a connection came or went."""

Place = tuple[Literal["in", "out"], str, str]
"""Direction, stream and topic."""


def to_others(metadata: PeMetadata) -> tuple[list[InputPort], list[OutputPort]]:
    """Return the ports that other PEs of the job are at. Outside topics and imports are none."""
    inputs = [port for port in metadata.inputs if not port.external and not port.imported]
    return inputs, [port for port in metadata.outputs if not port.external]


def connected(
    metadata: PeMetadata, known: Mapping[str, Brokers], clients: Clients
) -> dict[str, Brokers]:
    """Return the brokers of inputs and of streams to other PEs, beside those that are known.

    Those that librdkafka takes no such settings for are left out.
    """
    found, group = dict(known), consumer_group(metadata)
    for name, settings in clients.items():
        if name not in known or known[name].settings != settings:
            try:
                found[name] = Brokers(name, group, settings)
            except KafkaException as error:
                log.warning("brokers at %s are not watched: %s", name, error)
    return found


class Connections:
    """What the brokers said last; for use by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._why_not: dict[Place, str] = {}

    def look(
        self,
        metadata: PeMetadata,
        servers: str,
        brokers: Brokers,
        failed: Mapping[str, str],
        *,
        calm: bool,
    ) -> None:
        """Take in why inputs at some brokers `failed`, by topic, and ask about outputs if it is
        `calm`, inputs failed, or outputs did before. Blocks."""
        inputs, outputs = to_others(metadata)
        found: dict[Place, str] = {
            ("in", port.stream, port.topic): failed.get(port.topic, "")
            for port in inputs
            if port.bootstrap_servers == servers
        }
        known = self._why_not
        for port in outputs:
            place: Place = ("out", port.stream, port.topic)
            if port.bootstrap_servers != servers:
                continue
            if calm or failed or known.get(place, "not asked"):
                found[place] = _why_not(brokers, port.topic)
        there: set[Place] = {("in", port.stream, port.topic) for port in inputs}
        there |= {("out", port.stream, port.topic) for port in outputs}
        with self._lock:
            merged = self._why_not | found
            self._why_not = {place: why for place, why in merged.items() if place in there}

    def now(self) -> dict[Place, str]:
        """Return why each connection is not there; empty texts for those that are."""
        with self._lock:
            return dict(self._why_not)


def _why_not(brokers: Brokers, topic: str) -> str:
    try:
        return "" if brokers.partitions(topic) else f"there is no topic {topic}"
    except KafkaException as error:
        return str(error)


def changed(known: Iterable[Connection], now: Mapping[Place, str]) -> list[Connection] | None:
    """Return what the status should have, None if it says it already.

    Connections that are as they were keep their time and message: errors differ all the time.
    """
    before = {(item.direction, item.stream, item.topic): item for item in known}
    if {place: item.connected for place, item in before.items()} == {
        place: not why for place, why in now.items()
    }:
        return None
    at = to_rfc3339(time.time(), "seconds")
    result = []
    for (direction, stream, topic), why in sorted(now.items()):
        item = before.get((direction, stream, topic))
        if item is None or item.connected == bool(why):
            item = Connection(
                direction=direction,
                stream=stream,
                topic=topic,
                connected=not why,
                since=at,
                message=why[:500],
            )
        result.append(item)
    return result


async def report(connections: Connections, client: KubeClient, store: Store) -> None:
    """Keep them in the status of our PE, until cancelled; `store` holds it."""
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        for item in store.items():
            runtime = ProcessingElementStatus.model_validate(item.get("status", {})).runtime
            known = (runtime.connections or []) if runtime else []
            if (wanted := changed(known, connections.now())) is None:
                continue
            patch = {"connections": [connection.to_wire() for connection in wanted]}
            try:
                path = PROCESSING_ELEMENT.path(*key_of(item))
                body = {"status": {"runtime": patch}}
                store.observe(await client.patch(f"{path}/status", body))
            except (ApiError, Unreachable) as error:
                log.warning("connections not reported, again in a moment: %s", error)
