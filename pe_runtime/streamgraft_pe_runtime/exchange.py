"""Records from Kafka and back: what the rehearsal of a plan, which lets none pass, never runs.

In a driver that has done it a hundred methods of Kafka's clients and of Spark's sources and sinks
are compiled. Otherwise that is done when the first shard starts, between its first batch and the
first record that comes out of it.
"""

import json
import logging
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgraft_common.pe_metadata import RehearsalTopic
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.expressions import HEADERS_TYPE
from streamgraft_pe_runtime.plan import IMPATIENT, KafkaTarget, Plan
from streamgraft_pe_runtime.transport import spark_options
from streamgraft_pe_runtime.warm_up import run_batches

log = logging.getLogger(__name__)

_STARTS = 6
_RECORDS = 50
_SOURCE, _TARGET = 0, 1
"""Partitions: of the one that is read, and of the other that is only written to."""


def exchange(session: SparkSession, topic: RehearsalTopic, *, real_time: bool) -> None:
    """Send records through a query from one partition of a topic to the other, some times.

    A failure is only logged: the shards will meet it again, and report it where users look.
    """
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-exchange-"))
    target = KafkaTarget.at(topic.bootstrap_servers, topic.tls)
    numbers = session.range(_RECORDS).select(F.col("id").cast("string").alias("value"))
    sent = _records(numbers, topic, _SOURCE).drop("target").write.format("kafka")
    plan = Plan(_records(_read(session, topic), topic, _TARGET), [target], "update", real_time)
    try:
        run_batches(plan, folder, 1)  # reads nothing, but from now on whatever comes
        for _ in range(_STARTS):
            sent.options(**query.kafka_options(target)).save()
            run_batches(plan, folder, 1)
    except Exception as error:
        log.warning("exchange of records failed: %s", error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    log.info("records exchanged in %.1f s", time.monotonic() - began)


def _read(session: SparkSession, topic: RehearsalTopic) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": topic.bootstrap_servers,
        "assign": json.dumps({topic.topic: [_SOURCE]}),
        "startingOffsets": "latest",
        **spark_options(topic.tls),
        **IMPATIENT,
    }
    return session.readStream.format("kafka").options(**options).load()


def _records(frame: DataFrame, topic: RehearsalTopic, partition: int) -> DataFrame:
    """Return the values of a frame as records for a partition."""
    value = F.col("value").cast("binary")
    return frame.select(
        F.lit(0).alias("target"),
        F.lit(topic.topic).alias("topic"),
        value.alias("key"),
        value.alias("value"),
        F.lit(partition).alias("partition"),
        F.lit(None).cast(HEADERS_TYPE).alias("headers"),
    )
