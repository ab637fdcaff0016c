"""Whether Spark can run an operator in real-time mode, where rows flow one by one."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft._plan_checks import CTE_REFERENCE
from streamgraft._schemas import reason
from streamgraft_common.frames import row_of


def obstacle(
    spark: SparkSession, function: Callable[..., DataFrame], schemas: Sequence[StructType]
) -> str | None:
    """Return what in the plan of a stateless function real-time mode does not take, or None.

    Spark checks only when a query starts, by a list of physical operators. The same is done here
    with the plan for batch frames, as a stream has no physical plan before it runs.
    """
    try:
        result = function(*(_opaque(spark, schema) for schema in schemas))
        plan = result._jdf.queryExecution().sparkPlan()
    except Exception as error:  # user code; on streams it has run
        return f"its plan, which can't be looked into: {reason(error)}"
    allowed = _allowed(spark)
    foreign = {
        node.nodeName() for node in _nodes(plan) if not allowed.contains(node.getClass().getName())
    }
    return ", ".join(sorted(foreign)) or None


def read_twice(result: DataFrame) -> bool:
    """Return whether a plan reads one of its streams more than once, which Spark refuses there, or
    what a WITH of SQL defines, by which Spark does not see it."""
    leaves = result._jdf.queryExecution().analyzed().collectLeaves()
    streams = [
        leaf for index in range(leaves.size()) if (leaf := leaves.apply(index)).isStreaming()
    ]
    named = [leaf.cteId() for leaf in streams if leaf.nodeName() == CTE_REFERENCE]
    again = any(one.equals(other) for one, other in combinations(streams, 2))
    return again or len(named) > len(set(named))


def _opaque(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a frame of the schema whose rows the optimizer knows nothing about."""
    text = F.col("id").cast("string")
    return spark.range(1).select(row_of(text, schema).alias("row")).select("row.*")


def _allowed(spark: SparkSession) -> Any:
    """Return the class names of the physical operators that Spark runs in real-time mode."""
    jvm: Any = spark._jvm
    package = "org.apache.spark.sql.execution.streaming.runtime"
    allowlist = getattr(
        getattr(jvm.org.apache.spark.sql.execution.streaming.runtime, "RealTimeModeAllowlist$"),
        "MODULE$",
    )
    private = f"{package.replace('.', '$')}$RealTimeModeAllowlist$$allowedOperators"
    return getattr(allowlist, private)()


def _nodes(plan: Any) -> list[Any]:
    children = plan.children()
    below = [node for index in range(children.size()) for node in _nodes(children.apply(index))]
    return [plan, *below]
