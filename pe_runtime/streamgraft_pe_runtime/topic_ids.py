"""Whether sources read the topics that the positions in a shard's checkpoint are of.

A topic that was deleted and made anew has the same name, and so has one in another Kafka cluster
that answers at the same address. A position means nothing there: records before it would be
skipped, and nobody would notice. Kafka gives each topic an id that no other has, which is noted
beside the checkpoint. Streams between PEs are not looked at: a job that was restored has its own.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime.checkpoint_files import write
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.kafka_access import jvm_admin, spark_options
from streamgraft_pe_runtime.positions import place_in
from streamgraft_pe_runtime.protocol.failures import REPLACED

log = logging.getLogger(__name__)

NOTE = "topics.json"
"""File in a shard's folder with the ids of the topics that its sources read, by place. Copies of a
checkpoint keep it, for a region that goes back to a cut, and a job that is restored."""
_TIMEOUT_SECONDS = 5
_UNKNOWN = "AAAAAAAAAAAAAAAAAAAAAA"
"""What old brokers have for an id."""

Ids = Mapping[str, str]
"""Place → id of its topic, as far as brokers tell."""


class TopicReplaced(Exception):
    """A topic is another one than that which was read; the message says what to do."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} {REPLACED}")


def replaced(before: Ids, now: Ids) -> str | None:
    """Return the place of a topic that is another one now. Pure."""
    both = sorted(before.keys() & now.keys())
    return next((place for place in both if before[place] != now[place]), None)


def check(shard: Path, inputs: Iterable[InputPort], now: Ids) -> None:
    """Note which topics a shard reads from now on, unless one is another topic than before.

    `shard`: its folder. Raises TopicReplaced, CheckpointDamaged, OSError.
    """
    file, before = shard / NOTE, noted(shard)
    if place := replaced(before, now):
        raise TopicReplaced(place)
    sources = of_sources(inputs)
    known = {place: at for place, at in {**before, **now}.items() if place in sources}
    if known != before:
        shard.mkdir(parents=True, exist_ok=True)
        write(file, json.dumps(known))


def noted(shard: Path) -> dict[str, str]:
    """Return the note of a shard; nothing if there is none. Raises CheckpointDamaged, OSError."""
    file = shard / NOTE
    if not file.exists():
        return {}
    with reading(file):
        return {str(place): str(at) for place, at in json.loads(file.read_text()).items()}


def inherit(
    shard: Path, saved: Path, addresses: Mapping[str, str], inputs: list[InputPort]
) -> None:
    """Note for a shard that is restored which topics the saved one has read.

    `addresses`: of the brokers then, by place. Users may give a source others, which they know to
    have the same records at the same offsets. Raises CheckpointDamaged, OSError.
    """
    same = brokers(inputs).items() & addresses.items()
    if kept := {place: at for place, at in noted(saved).items() if place in dict(same)}:
        write(shard / NOTE, json.dumps(kept))


def brokers(inputs: Iterable[InputPort]) -> dict[str, str]:
    """Return the addresses of the brokers of sources, by place. Pure."""
    return {place: port.bootstrap_servers for place, port in of_sources(inputs).items()}


def of_sources(inputs: Iterable[InputPort]) -> dict[str, InputPort]:
    """Return the inputs that are topics of users, by place. Pure.

    Not imports: what they are connected to comes and goes (scala/imports).
    """
    ports = [*inputs]
    return {place_in(ports, port): port for port in ports if port.external and not port.imported}


def ask(
    session: SparkSession, inputs: Iterable[InputPort], options: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Return the ids of the topics that sources read, as far as brokers tell in time.

    `options`: of the sources, by operator. By the JVM's client: librdkafka's admin client may end
    the process (brokers.py).
    """
    found: dict[str, str] = {}
    for place, port in of_sources(inputs).items():
        try:
            found[place] = _id_of(session._jvm, port, options.get(port.operator, {}))
        except Exception as error:  # no right to ask, no such topic, brokers that are away
            log.debug("the id of %s: %s", place, error)
    return {place: at for place, at in found.items() if at != _UNKNOWN}


def _id_of(jvm: Any, port: InputPort, options: Mapping[str, str]) -> str:
    milliseconds = str(_TIMEOUT_SECONDS * 1000)
    settings = {
        "kafka.request.timeout.ms": milliseconds,
        "kafka.default.api.timeout.ms": milliseconds,
        **spark_options(port.tls),
        **options,
    }
    with jvm_admin(jvm, port.bootstrap_servers, settings) as admin:
        described = admin.describeTopics(jvm.java.util.ArrayList([port.topic]))
        description = described.topicNameValues().get(port.topic).get()
        return str(description.topicId().toString())
