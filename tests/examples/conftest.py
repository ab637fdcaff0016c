"""What tests of examples share."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgraft import Application
from streamgraft.testing import GraphTest

Records = Callable[[Iterable[Mapping[str, Any]], str], DataFrame]
Graphs = Callable[[Application], GraphTest]


@pytest.fixture
def records(spark: SparkSession) -> Records:
    """Read records as a source does: from JSON, with its schema."""

    def read(items: Iterable[Mapping[str, Any]], schema: str) -> DataFrame:
        values = spark.createDataFrame([(json.dumps(item),) for item in items], "value string")
        return values.select(F.from_json("value", schema).alias("it")).select("it.*")

    return read


@pytest.fixture
def graph_of(spark: SparkSession) -> Graphs:
    """Make what runs an application on rows."""

    def made(application: Application) -> GraphTest:
        return GraphTest(application, spark)

    return made
