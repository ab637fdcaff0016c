"""Whether Spark can run an operator in real-time mode, where rows flow one by one."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

_PLACEHOLDER = "StreamingRelationExec"
"""Where a planned stream's source will be."""


def opaque_stream(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a streaming frame of the schema whose rows the optimizer knows nothing about."""
    text = F.col("value").cast("string")
    rows = spark.readStream.format("rate").load().select(F.from_json(text, schema).alias("row"))
    return rows.select("row.*")


def obstacle(spark: SparkSession, frame: DataFrame) -> str | None:
    """Return what in a stateless frame keeps Spark from running it in real-time mode, or None.

    Spark itself checks only when a query starts, by a list of physical operators: the same here.
    """
    state: Any = spark._jsparkSession.sessionState()
    query = frame._jdf.queryExecution()
    try:
        plan = state.planner().plan(state.optimizer().execute(query.analyzed())).next()
    except (Py4JJavaError, PySparkException):
        return "its plan"
    foreign = {node.nodeName() for node in _nodes(plan) if not _allowed(spark, node)}
    return ", ".join(sorted(foreign)) or None


def _allowed(spark: SparkSession, node: Any) -> bool:
    streaming: Any = spark._jvm
    rules = streaming.org.apache.spark.sql.execution.streaming.runtime
    allowlist = getattr(getattr(rules, "RealTimeModeAllowlist$"), "MODULE$")
    prefix = "org$apache$spark$sql$execution$streaming$runtime$RealTimeModeAllowlist$$"
    name = node.getClass().getName()
    return bool(
        name.endswith(f".{_PLACEHOLDER}")
        or getattr(allowlist, f"{prefix}allowedOperators")().contains(name)
    )


def _nodes(plan: Any) -> list[Any]:
    children = plan.children()
    below = [node for index in range(children.size()) for node in _nodes(children.apply(index))]
    return [plan, *below]
