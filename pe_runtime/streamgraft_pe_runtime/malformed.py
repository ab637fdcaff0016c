"""Records of a source that are no objects of its schema: refused, set aside or left out.

What Spark's own decoder would do is to make a row of nulls of each, without a word.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from streamgraft_common.adl import KafkaEndpoint
from streamgraft_common.columns import MALFORMED
from streamgraft_common.pe_metadata import InputPort
from streamgraft_common.record_size import LARGEST_RECORD_BYTES
from streamgraft_pe_runtime import encoded
from streamgraft_pe_runtime.kafka_access import UNASKED, client_settings, spark_options
from streamgraft_pe_runtime.out_of_range import decoded_as
from streamgraft_pe_runtime.out_of_range import problem as out_of_range

_NO_PROBLEM = "cast(null as string) as problem"
_PRODUCER = {
    "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
    "value.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
    "max.block.ms": "10000",
    "delivery.timeout.ms": "30000",
    "request.timeout.ms": "9000",
    "linger.ms": "5",
    "max.request.size": str(LARGEST_RECORD_BYTES),
}


def decoded(
    records: DataFrame, port: InputPort, endpoint: KafkaEndpoint, schema: StructType
) -> DataFrame:
    """Return the rows of an outside topic's records with a value; malformed ones make none."""
    session = records.sparkSession
    source = _configure(session, port, endpoint, schema)
    unwrapped = [StructField(item.name, decoded_as(item.dataType)) for item in schema]
    whole = StructType([*unwrapped, StructField(MALFORMED, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    place = ("topic", "partition", "offset", "key", "value")
    refused = f"{_refuse(session)}('{source}', {', '.join(place)}, problem)"
    found = records.where("value is not null")
    if endpoint.encoding is None:
        found = found.select(*place, F.expr("cast(value as string) as text"), F.expr(_NO_PROBLEM))
    else:
        decoded = encoded.decoded(endpoint.encoding, port.topic).alias("decoded")
        found = found.select(*place, decoded).select(*place, "decoded.*")
    found = found.select(*place, "problem", F.from_json("text", whole, options).alias("row"))
    if problems := [*_problems(schema, endpoint)]:
        found = found.withColumn("problem", F.coalesce("problem", *problems))
    wrong = f"row is null or row.{MALFORMED} is not null or problem is not null"
    return found.where(f"case when {wrong} then {refused} else true end").select(
        *(_column(item) for item in schema)
    )


def counts(session: SparkSession) -> dict[tuple[str, str], int]:
    """Return how many malformed records the driver has met, by source operator and topic.

    Those of a batch that runs again after a failure count again.
    """
    return {(operator, topic): int(count) for operator, topic, count in _registry(session).counts()}


def _problems(schema: StructType, endpoint: KafkaEndpoint) -> Iterator[Column]:
    """Yield what may be wrong with a row that was decoded, null where it is not."""
    if (odd := out_of_range(F.col("row"), schema)) is not None:
        yield odd
    decoded = F.expr(f"row is not null and row.{MALFORMED} is null")
    for name in endpoint.required or ():
        absent = decoded & F.col("row").getField(name).isNull()
        yield F.when(absent, F.lit(f"'{name}' is NOT NULL, and null or missing"))


def _configure(
    session: SparkSession, port: InputPort, endpoint: KafkaEndpoint, schema: StructType
) -> str:
    """Return the key under which the JVM knows the source with these settings."""
    action, topic = endpoint.malformed, port.dead_letters
    if action == "dead_letter" and topic is None:
        action = "fail"  # the metadata is of an operator that knows no such topic
    producer = dict(_PRODUCER)
    if topic is not None:
        own = {**spark_options(topic.tls), **UNASKED, **endpoint.options}
        producer |= client_settings(own)
        producer["bootstrap.servers"] = topic.bootstrap_servers
    name = topic.topic if topic else ""
    settings = (port.operator, action, schema.json(), name, producer)
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    _registry(session).configure(key, *settings)
    return key


def _registry(session: SparkSession) -> Any:
    jvm: Any = session._jvm
    return jvm.org.apache.spark.sql.streamgraft.MalformedRecords


@cache
def _refuse(session: SparkSession) -> str:
    """Return the name of the function that no record passes."""
    registry = _registry(session)
    registry.register(session._jsparkSession)
    return str(registry.Function())


def _column(field: StructField) -> Column:
    found = F.col("row").getField(field.name)
    cast = found if decoded_as(field.dataType) == field.dataType else found.cast(field.dataType)
    return cast.alias(field.name)
