"""Streams whose records may come again, each of which says then which it is (scala/repeats)."""

import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime.kafka_access import client_settings

HEADER = "streamgraft-origin"


def dropped(
    records: DataFrame,
    port: InputPort,
    way: int,
    metadata: PeMetadata,
    options: Mapping[str, str],
) -> DataFrame:
    """Return the records of a port without those that came before, if any may come again.

    `way`: number of the way that they go, which may be at another place than others; `options`: of
    the source.
    """
    if not port.repeats:
        return records
    # One stream has several topics, and file names can be no longer than topic names.
    session, name = records.sparkSession, f"{zlib.crc32(port.topic.encode()):08x}-{way}"
    _register(session)
    settings, of_shards = client_settings(options), metadata.region is not None
    _jvm(session).open(name, port.topic, settings, of_shards)
    origin = f"get(filter(headers, header -> header.key = '{HEADER}'), 0).value"
    is_new = _jvm(session).Function()
    return records.where(F.expr(f"{is_new}('{name}', partition, offset, {origin})"))


def keep_notes(session: SparkSession, stage: Path, inputs: Iterable[InputPort]) -> None:
    """Keep what was seen last beside the checkpoints of a stage's shards."""
    if any(port.repeats for port in inputs):
        _jvm(session).keepNotes(str(stage))


@cache
def _register(session: SparkSession) -> None:
    _jvm(session).register(session._jsparkSession)


def _jvm(session: SparkSession) -> Any:
    jvm: Any = session._jvm
    return jvm.org.apache.spark.sql.kafka010.repeats.Repeats
