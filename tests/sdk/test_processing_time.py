"""Graph tests of operators with processing-time timers, for which Spark runs batches for ever."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import streamgraft as sg
from streamgraft._analysis_session import analysis_session
from streamgraft.testing import GraphTest

app = sg.Application("timers")
clicks = app.kafka_source("clicks", topic="clicks", schema="user string")


@app.operator(inputs=clicks, output_mode="update")
def counts(rows: DataFrame) -> DataFrame:
    """Count each user's clicks until he is idle for an hour."""

    def count(
        key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        (before,) = state.get if state.exists else (0,)
        total = before + sum(map(len, frames))
        state.update((total,))
        state.setTimeoutDuration(3_600_000)
        yield pd.DataFrame({"user": [key[0]], "clicks": [total]})

    return rows.groupBy("user").applyInPandasWithState(
        count,
        "user string, clicks bigint",
        "clicks bigint",
        "update",
        GroupStateTimeout.ProcessingTimeTimeout,
    )


app.kafka_sink("result", input=counts, topic="counts")


@pytest.fixture
def session() -> Iterator[SparkSession]:
    """A small driver."""
    with analysis_session({"spark.sql.shuffle.partitions": "1"}) as spark:
        yield spark


@pytest.mark.integration
def test_a_stream_ends_some_empty_batches_behind_the_given_ones(session: SparkSession) -> None:
    results = GraphTest(app, session).stream("counts", clicks=[[{"user": "ada"}]] * 2)
    found = [results.rows("counts", batch) for batch in range(results.batches("counts"))]
    assert found[:2] == [[{"user": "ada", "clicks": 1}], [{"user": "ada", "clicks": 2}]]
    assert found[2:] == [[]] * 5
