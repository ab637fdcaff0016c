"""Every kind of state goes from owner to owner: nothing is lost, forgotten or counted twice."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from tests.pe_runtime.one_driver import KEYS, Job, driver, make_topic, rows, write

import streamgraft as sg
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

COUNT = 40
"""Numbers that are new in each round."""
OWNERS = 3
LAST = 10_000
SCHEMA = "key string, n long"
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


class Totals(StatefulProcessor):
    """Adds numbers up, by key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take the state up."""
        self._total = handle.getValueState("total", "n long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Add the numbers of a batch, and tell the total."""
        (before,) = self._total.get() or (0,)
        total = before + sum(int(part["n"].sum()) for part in rows)
        self._total.update((total,))
        yield pd.DataFrame({"key": [key[0]], "n": [total]})

    def close(self) -> None:
        """Nothing is open."""


def application(topic: str, other: str) -> sg.Application:
    """Return an application with an operator for each kind of state, and a sink for each."""
    app = sg.Application("states", spark_conf=ROCKSDB)
    numbers = app.kafka_source("numbers", topic=topic, schema=SCHEMA)
    others = app.kafka_source("others", topic=other, schema=SCHEMA)

    @app.operator(inputs=numbers, output_mode="update")
    def counts(numbers: DataFrame) -> DataFrame:
        return numbers.groupBy("key").agg(F.count("*").alias("n"))

    @app.operator(inputs=numbers)
    def windows(numbers: DataFrame) -> DataFrame:
        timed = numbers.select(F.timestamp_seconds("n").alias("time"))
        window = timed.withWatermark("time", "1000 seconds").groupBy(F.window("time", "20 seconds"))
        counted = window.agg(F.count("*").alias("n"))
        return counted.select(F.col("window.start").cast("long").alias("start"), "n")

    @app.operator(inputs=numbers)
    def distinct(numbers: DataFrame) -> DataFrame:
        return numbers.dropDuplicates(["n"])

    @app.operator(inputs=[numbers, others])
    def joined(numbers: DataFrame, others: DataFrame) -> DataFrame:
        return numbers.join(others.select("n"), "n")

    @app.operator(inputs=numbers, output_mode="update")
    def totals(numbers: DataFrame) -> DataFrame:
        return numbers.groupBy("key").transformWithStateInPandas(
            Totals(), outputStructType=SCHEMA, outputMode="Update", timeMode="None"
        )

    for name in ("counts", "windows", "distinct", "joined", "totals"):
        app.kafka_sink(f"{name}-out", input=name, topic=f"{topic}-{name}")
    return app


def newest(job: Job, topic: str) -> dict[str, int]:
    """Return the last value of each key that a topic has now."""
    return {row["key"]: row["n"] for row in rows(job.read(topic, job.size(topic)))}


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_state_moves(cluster: Cluster, tmp_path: Path) -> None:
    """Three owners in turn; what each sees anew needs what the ones before have seen."""
    topic, other = make_topic(cluster), make_topic(cluster)
    fresh = [range(COUNT * owner, COUNT * (owner + 1)) for owner in range(OWNERS)]
    with driver(cluster, ROCKSDB) as session:
        job = Job(application(topic, other), session, cluster, tmp_path)
        for owner in range(OWNERS):
            if owner:
                write(cluster, topic, fresh[owner - 1])  # again: no longer distinct
                write(cluster, other, fresh[owner - 1])
            write(cluster, topic, fresh[owner])
            distinct = rows(job.read(f"{topic}-distinct", COUNT * (owner + 1)))
            joined = rows(job.read(f"{topic}-joined", 2 * COUNT * owner))
            job.stop()
            job.start()
        write(cluster, topic, range(LAST, LAST + 1))
        windows = rows(job.read(f"{topic}-windows", COUNT * OWNERS // 20))
        sent = [*fresh[0], *fresh[0], *fresh[1], *fresh[1], *fresh[2], LAST]
        by_key = {f"k{key}": [n for n in sent if n % KEYS == key] for key in range(KEYS)}
        counts = {key: len(numbers) for key, numbers in by_key.items()}
        totals = {key: sum(numbers) for key, numbers in by_key.items()}
        until(lambda: newest(job, f"{topic}-counts") == counts)
        until(lambda: newest(job, f"{topic}-totals") == totals)
        job.stop()
    assert sorted(row["n"] for row in distinct) == list(range(COUNT * OWNERS))
    assert sorted(row["n"] for row in joined) == sorted([*fresh[0], *fresh[1]] * 2)
    assert {row["start"]: row["n"] for row in windows} == {
        start: 20 * (1 + (start < 2 * COUNT)) for start in range(0, COUNT * OWNERS, 20)
    }
