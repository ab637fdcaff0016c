"""A round trip of records through Kafka, which the rehearsal of a plan never makes.

In a driver that has done it a hundred methods of Kafka's clients and of Spark's sources and sinks
are compiled. Otherwise that is done when the first shard starts, between its first batch and the
first record that comes out of it.
"""

import json
import logging
import shutil
import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamgraft_common.pe_metadata import OwnTopic
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.expressions import HEADERS_TYPE
from streamgraft_pe_runtime.kafka_access import UNASKED, consumer_options, spark_options
from streamgraft_pe_runtime.plan import IMPATIENT, READ_COMMITTED, Plan
from streamgraft_pe_runtime.plan_scans import WAY
from streamgraft_pe_runtime.real_time import noted, number_of
from streamgraft_pe_runtime.targets import KafkaTarget

log = logging.getLogger(__name__)

_STARTS = 6
_BATCHES = 3
"""With records, each time that the query starts. In real-time mode, where batches end by the clock,
those of a driver that has no CPU for itself are over before one comes."""
_TRIGGER_SECONDS = 0.5
_PAUSE_SECONDS = 0.005
"""Between two records: it is requests, not records, that most of the code is run for."""
_BETWEEN_LOOKS = 20
"""Records that are sent until the query is looked at again."""
_LONGEST_SECONDS = 60.0
_WAY = "exchange"
_SOURCE, _TARGET = 0, 1
"""Partitions: of the one that is read, and of the other that is only written to."""


def exchange(session: SparkSession, topic: OwnTopic, *, real_time: bool) -> None:
    """Send records through a query from one partition of a topic to the other, in several starts.

    A failure is only logged: the shards will meet it again, and report it where users look.
    """
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-exchange-"))
    servers = {"bootstrap.servers": topic.bootstrap_servers, **consumer_options(topic.tls)}
    try:
        plan, producer = _plan(session, topic, real_time), Producer(servers)
        for _ in range(_STARTS):
            _run(plan, folder, producer, topic.topic)
    except Exception as error:
        log.warning("exchange of records failed: %s", error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    log.info("records exchanged in %.1f s", time.monotonic() - began)


def _run(plan: Plan, checkpoint: Path, producer: Producer, topic: str) -> None:
    """Run the query for some batches, and let records come all the time."""
    running = query.start(plan, checkpoint, _TRIGGER_SECONDS, "exchange")
    deadline = time.monotonic() + _LONGEST_SECONDS
    try:
        while sum(report["numInputRows"] > 0 for report in running.reports(-1)) < _BATCHES:
            if failure := running.failure():
                raise RuntimeError(failure.partition("\n")[0])
            if time.monotonic() > deadline:
                raise RuntimeError(f"no {_BATCHES} batches within {_LONGEST_SECONDS:g} s")
            for _ in range(_BETWEEN_LOOKS):
                producer.produce(topic, "1", "1", _SOURCE)
                producer.poll(_PAUSE_SECONDS)
    finally:
        running.stop(_LONGEST_SECONDS)


def _plan(session: SparkSession, topic: OwnTopic, real_time: bool) -> Plan:
    # An id that no shard has: it would fence the shard's owner.
    target = KafkaTarget.at(
        topic.bootstrap_servers,
        topic.tls,
        topic.topic,
        transactional_id=f"{topic.topic}.{uuid.uuid4()}",
    )
    options = {
        "kafka.bootstrap.servers": topic.bootstrap_servers,
        "assign": json.dumps({topic.topic: [_SOURCE]}),
        "startingOffsets": "latest",
        **READ_COMMITTED,
        **spark_options(topic.tls),
        **UNASKED,
        **IMPATIENT,
    }
    reader = session.readStream.format("kafka").options(**options).option(WAY, number_of(_WAY))
    frame = noted(reader.load(), _WAY) if real_time else reader.load()
    record = frame.select(
        F.lit(0).alias("target"),
        F.lit(topic.topic).alias("topic"),
        "key",
        "value",
        F.lit(_TARGET).alias("partition"),
        F.lit(None).cast(HEADERS_TYPE).alias("headers"),
    )
    return Plan(record, [target], "update", real_time)
