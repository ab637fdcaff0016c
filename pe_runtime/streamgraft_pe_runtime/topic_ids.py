"""Whether inputs are the topics that the positions in a shard's checkpoint are of.

A topic that was deleted and made anew has the same name, and so has one in another Kafka cluster
that answers at the same address. A position means nothing there: records before it would be
skipped, and nobody would notice. Kafka gives each topic an id that no other has, which is noted
beside the checkpoint.
"""

import json
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime.checkpoint_files import write
from streamgraft_pe_runtime.checkpoint_health import reading
from streamgraft_pe_runtime.kafka_access import jvm_admin, spark_options
from streamgraft_pe_runtime.positions import place_in
from streamgraft_pe_runtime.protocol.failures import REPLACED, STREAM_REPLACED
from streamgraft_pe_runtime.scan_order import topic_of

log = logging.getLogger(__name__)

NOTE = "topics.json"
"""File in a shard's folder with the ids of the topics that it reads, by place. Copies of a
checkpoint keep it, for a region that goes back to a cut, and a job that is restored."""
_TIMEOUT_SECONDS = 5
_ATTEMPTS = 2
"""Before a query starts: the first one of a driver may load classes for all of the time."""
_KNOWN_SECONDS = 90.0
"""For which it is known that a stream between PEs is the noted one: who follows a query asks twice
a minute, and shards that change hands need not wait for brokers."""
_LATE = "TimeoutException"
_UNKNOWN = "AAAAAAAAAAAAAAAAAAAAAA"
"""What old brokers have for an id."""

Ids = Mapping[str, str]
"""Place → id of its topic, as far as brokers tell."""


class TopicReplaced(Exception):
    """A topic is another one than that which was read; the message says what to do."""

    def __init__(self, place: str, port: InputPort | None = None) -> None:
        """`port`: the input, if it is one still."""
        stream = port is not None and not port.external
        super().__init__(f"{place} {STREAM_REPLACED if stream else REPLACED}")


class Topics:
    """The topics that a query reads, as far as they are known to be those of before."""

    def __init__(self, shards: Iterable[Path], inputs: Sequence[InputPort]) -> None:
        """`shards`: their folders."""
        self._shards, self._inputs = tuple(shards), inputs
        self._known: dict[str, str] = {}

    def noted(self) -> dict[str, str]:
        """Return what all shards have noted alike. Raises CheckpointDamaged, OSError."""
        first, *others = map(noted, self._shards)
        return {
            place: at
            for place, at in first.items()
            if all(other.get(place) == at for other in others)
        }

    def confirm(self, now: Ids) -> None:
        """Compare with the notes what brokers tell, and note what they tell for the first time.

        Raises TopicReplaced, CheckpointDamaged, OSError.
        """
        if now.items() <= self._known.items():
            return
        for shard in self._shards:
            check(shard, self._inputs, now)
        self._known |= now


def replaced(before: Ids, now: Ids) -> str | None:
    """Return the place of a topic that is another one now. Pure."""
    both = sorted(before.keys() & now.keys())
    return next((place for place in both if before[place] != now[place]), None)


def check(shard: Path, inputs: Iterable[InputPort], now: Ids) -> None:
    """Note which topics a shard reads from now on, unless one is another topic than before.

    `shard`: its folder. Raises TopicReplaced, CheckpointDamaged, OSError.
    """
    file, before, ports = shard / NOTE, noted(shard), _looked_at(inputs)
    if place := replaced(before, now):
        raise TopicReplaced(place, ports.get(place))
    known = {place: at for place, at in {**before, **now}.items() if place in ports}
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
    have the same records at the same offsets. Streams between PEs are the job's own. Raises
    CheckpointDamaged, OSError.
    """
    same = brokers(inputs).items() & addresses.items()
    if kept := {place: at for place, at in noted(saved).items() if place in dict(same)}:
        write(shard / NOTE, json.dumps(kept))


def forget(shard: Path, topics: Collection[str]) -> None:
    """Forget which topics of these names were read: positions in them are of those of now.

    Raises CheckpointDamaged, OSError.
    """
    before = noted(shard)
    kept = {place: at for place, at in before.items() if topic_of(place) not in topics}
    if kept != before:
        write(shard / NOTE, json.dumps(kept))


def brokers(inputs: Iterable[InputPort]) -> dict[str, str]:
    """Return the addresses of the brokers of sources, by place. Pure."""
    return {place: port.bootstrap_servers for place, port in of_sources(inputs).items()}


def of_sources(inputs: Iterable[InputPort]) -> dict[str, InputPort]:
    """Return the inputs that are topics of users, by place. Pure."""
    return {place: port for place, port in _looked_at(inputs).items() if port.external}


def _looked_at(inputs: Iterable[InputPort]) -> dict[str, InputPort]:
    """Return the inputs whose topics have to stay the same, by place. Pure.

    Not imports: what they are connected to comes and goes (scala/imports).
    """
    ports = [*inputs]
    return {place_in(ports, port): port for port in ports if not port.imported}


class TopicIds:
    """Asks brokers for the ids of topics; for use by any thread.

    By the JVM's client: librdkafka's admin client may end the process (brokers.py).
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._streams: dict[tuple[str, str], tuple[str, float]] = {}
        """By brokers and topic: the id of a stream between PEs, and when it was told (monotonic
        clock)."""

    def ask(
        self,
        inputs: Iterable[InputPort],
        options: Mapping[str, Mapping[str, str]],
        noted: Ids | None = None,
    ) -> dict[str, str]:
        """Return the ids of the topics of inputs by place, as far as brokers tell in time.

        `options`: of sources, by operator; `noted`: before a query starts, what its shards have
        noted. Brokers that have told that of a stream a moment ago are not asked again.
        """
        known, attempts = noted or {}, 1 if noted is None else _ATTEMPTS
        found: dict[str, str] = {}
        asked: dict[tuple[str, str], dict[str, InputPort]] = {}
        for place, port in _looked_at(inputs).items():
            if place in known and known[place] == self._told_lately(port):
                found[place] = known[place]
            else:  # streams together, each source with options of its own
                group = (port.bootstrap_servers, port.operator if port.external else "")
                asked.setdefault(group, {})[place] = port
        for ports in asked.values():
            first = next(iter(ports.values()))
            topics = {port.topic for port in ports.values()}
            ids, late = self._told(first, options.get(first.operator, {}), topics, attempts)
            if not first.external:
                now, servers = time.monotonic(), first.bootstrap_servers
                for topic in topics.difference(ids, late):  # it may be gone
                    self._streams.pop((servers, topic), None)
                self._streams |= {(servers, topic): (at, now) for topic, at in ids.items()}
            found |= {place: ids[port.topic] for place, port in ports.items() if port.topic in ids}
        return found

    def _told_lately(self, port: InputPort) -> str | None:
        at, told = self._streams.get((port.bootstrap_servers, port.topic), ("", 0.0))
        return at if at and time.monotonic() - told < _KNOWN_SECONDS else None

    def _told(
        self, port: InputPort, options: Mapping[str, str], topics: Iterable[str], attempts: int
    ) -> tuple[dict[str, str], list[str]]:
        """Return what brokers tell of topics, as input `port` talks to them, and those topics of
        which they told nothing in time."""
        found: dict[str, str] = {}
        left = sorted(topics)
        for _ in range(attempts):
            told, left = self._described(port, options, left)
            found |= told
            if not left:
                break
        if left:
            log.warning("brokers at %s: no answer in time about %s", port.bootstrap_servers, left)
        return {topic: at for topic, at in found.items() if at != _UNKNOWN}, left

    def _described(
        self, port: InputPort, options: Mapping[str, str], topics: Sequence[str]
    ) -> tuple[dict[str, str], list[str]]:
        """Return ids of topics, and those topics of which brokers told nothing in time."""
        jvm: Any = self._session._jvm
        milliseconds = str(_TIMEOUT_SECONDS * 1000)
        settings = {
            **spark_options(port.tls),
            **options,
            # Behind those of a source: Kafka refuses a client that waits longer for a request than
            # for an answer.
            "kafka.request.timeout.ms": milliseconds,
            "kafka.default.api.timeout.ms": milliseconds,
        }
        found, late = {}, []
        try:
            with jvm_admin(jvm, port.bootstrap_servers, settings) as admin:
                futures = admin.describeTopics(jvm.java.util.ArrayList([*topics])).topicNameValues()
                for topic in topics:
                    try:
                        found[topic] = str(futures.get(topic).get().topicId().toString())
                    except Exception as error:  # no right to ask, no such topic, too late
                        log.debug("the id of %s: %s", topic, error)
                        if _LATE in str(error):
                            late.append(topic)
        except Exception as error:  # they can't be talked to so
            log.debug("ids of topics at %s: %s", port.bootstrap_servers, error)
        return found, late
