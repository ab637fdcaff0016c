"""Real-time mode: how many task slots it needs, and how busy they are.

In this mode each partition of each scan keeps a task, and so a slot, for as long as a batch lasts.
Spark doesn't check that there are enough: partitions without a slot would starve silently.
"""

import os
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.real_time import slots_needed

BATCH_SECONDS = 5
"""Length of a batch: how long a planned stop takes at most, and how old committed positions get."""
_TASK_THREADS = "Executor task"
_ORIGIN = "streamgraft_origin"
_NOTE_ORIGIN = "org.apache.spark.sql.kafka010.exactlyonce.NoteOrigin"


def noted(records: DataFrame, way: str) -> DataFrame:
    """Return the records of a source; where each is from is noted for the sink, which may be asked
    to write what comes of it once. `way`: that they go, which no other scan of the plan has."""
    _register(records.sparkSession)
    return records.where(F.expr(f"{_ORIGIN}({number_of(way)}, topic, partition, offset)"))


def number_of(way: str) -> int:
    """Return the number of a way that rows go: another way more or less must not change it."""
    return zlib.crc32(way.encode()) >> 1


@cache
def _register(session: SparkSession) -> None:
    session.udf.registerJavaFunction(_ORIGIN, _NOTE_ORIGIN, BooleanType())


def starvation(
    metadata: PeMetadata, partitions: Mapping[tuple[str, str], int], scans: int, slots: int
) -> str | None:
    """Return why partitions would wait for a slot for ever, None if they would not. Pure.

    `partitions`: of the outside topics that the PE reads whole, by brokers and name; `scans`: of
    one query's plan, more than inputs if rows of one input go several ways.
    """
    counts = [
        port.partitions or partitions.get((port.bootstrap_servers, port.topic), 1)
        for port in metadata.inputs
    ]
    needed = slots_needed(metadata.shard_count if metadata.region else None, counts, scans)
    if needed <= slots:
        return None
    return (
        f"real-time mode needs a task slot for each partition that it reads, which are {needed};"
        f" the PE has {slots}: raise its slots (without a number of yours the operator counts the"
        " partitions of source topics), or leave out real_time"
    )


def task_cpu_seconds(pid: int) -> float:
    """Return the CPU time of the task threads of a driver's JVM.

    Tasks of this mode run all the time, whether they have something to do or not.
    """
    ticks = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            stat = (thread / "stat").read_text()
        except OSError:
            continue  # it has ended
        name, _, fields = stat.partition("(")[2].rpartition(")")
        if name.startswith(_TASK_THREADS):
            user, system = fields.split()[11:13]
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")
