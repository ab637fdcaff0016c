"""The application's operators on real Spark, against the batch result and the real service."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from examples.flights import app, batch, comparison, dataset, replay

pytestmark = pytest.mark.integration


def test_operators_equal_batch(spark: SparkSession, service_url: str) -> None:
    """Thirty days through all operators, from JSON records on: the batch result, digit by digit."""
    flights = dataset.flights(30)
    app.app.bind({"service-url": service_url})
    lines = [record.decode() for record in replay.encoded(flights)]
    values = spark.createDataFrame([(line,) for line in lines], "value string")
    records = values.select(F.from_json("value", app.FLIGHT).alias("flight")).select("flight.*")
    result = app.means(app.statistics(app.emissions(app.conditions(records))))
    streamed = comparison.result_of([row.asDict() for row in result.collect()])
    assert comparison.differences(streamed, batch.statistics(flights)) == []
    assert comparison.flights_of(streamed) == len(flights)
