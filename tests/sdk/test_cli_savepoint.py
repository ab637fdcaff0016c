"""Savepoints on real parts: taken, listed, refused where they do not fit, restored, deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sdk.counting import KEYS, Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

APPLICATION = """
import streamgraft as sg

app = sg.Application("counts", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string")

with app.parallel("work", key=["key"], width=1, max_width={groups}):

    @app.operator(inputs=records, output_mode="update")
    def {operator}(rows):
        return rows.groupBy("key").count()

app.kafka_sink("results", input={operator}, topic="{sink}", key=["key"])
"""

TRANSFORM_WITH_STATE = """
import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
import streamgraft as sg

conf = {{
    "spark.sql.streaming.stateStore.providerClass":
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}}
app = sg.Application("counts", trigger_seconds=0.3, spark_conf=conf)
records = app.kafka_source("records", topic="{source}", schema="key string")


class Counting(StatefulProcessor):
    def init(self, handle):
        self._count = handle.getValueState("count", "n long")

    def handleInputRows(self, key, rows, timerValues):
        (before,) = self._count.get() or (0,)
        count = before + sum(len(part) for part in rows)
        self._count.update((count,))
        yield pd.DataFrame({{"key": [key[0]], "count": [count]}})

    def close(self):
        pass


with app.parallel("work", key=["key"], width=1, max_width={groups}):

    @app.operator(inputs=records, output_mode="update")
    def {operator}(rows):
        return rows.groupBy("key").transformWithStateInPandas(
            Counting(), outputStructType="key string, count long",
            outputMode="Update", timeMode="None",
        )

app.kafka_sink("results", input={operator}, topic="{sink}", key=["key"])
"""


@pytest.fixture
def streams(cluster: Cluster, namespace: str) -> Streams:
    """The topics of the test."""
    return Streams(cluster, namespace)


def written(
    folder: Path, streams: Streams, name: str, text: str = APPLICATION, **changes: object
) -> Path:
    """Write an application; its sink has its name."""
    settings = {"source": streams.source, "groups": 4, "operator": "counted"} | changes
    file = folder / f"{name}.py"
    file.write_text(text.format(sink=f"{streams.source}-{name}", **settings))
    return file


Run = Callable[..., str]


@pytest.fixture
def run(cluster: Cluster, namespace: str) -> Run:
    """Run a command in the namespace of the test; return what it says."""
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]

    def run(*arguments: str | Path, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*options, *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.output

    return run


@pytest.mark.long
def test_savepoint_is_taken_refused_where_it_does_not_fit_restored_and_deleted(
    cluster: Cluster, run: Run, streams: Streams, tmp_path: Path
) -> None:
    """Versions go on from the saved state, also with other key groups: the batch result."""
    run("submit", written(tmp_path, streams, "counts"), "--wait")
    streams.send(200)
    streams.counted(f"{streams.source}-counts")
    assert "complete: 5 shards" in run("savepoint", "create", "counts", "--name", "first")
    assert "first" in run("savepoint", "list")
    assert "already" in run("savepoint", "create", "counts", "--name", "first", code=1)
    other = written(tmp_path, streams, "renamed", operator="sums")
    refused = run("savepoint", "restore", "first", other, "--as", "fork", code=1)
    assert "counted" in refused
    taken = run("savepoint", "restore", "first", "--as", "counts", code=1)
    assert "there is a job counts already" in taken
    assert "no savepoint second" in run("savepoint", "restore", "second", code=1)

    streams.send(100)
    wider = written(tmp_path, streams, "wider", groups=8)
    output = run("savepoint", "restore", "first", wider, "--as", "fork", "--wait")
    assert "4 key groups" in output
    assert "dealt out to 8" in output
    fork = streams.counted(f"{streams.source}-wider")
    assert min(count for _, count in fork) > 200 // KEYS  # what was counted before isn't again

    same = written(tmp_path, streams, "same")
    run("savepoint", "restore", "first", same, "--yes", "--wait")
    assert min(count for _, count in streams.counted(f"{streams.source}-same")) > 200 // KEYS
    run("savepoint", "delete", "first")
    assert not list(cluster.checkpoints.glob("*/savepoints/first"))


@pytest.mark.long
def test_transform_with_state_is_restored_with_its_key_groups_only(
    run: Run, streams: Streams, tmp_path: Path
) -> None:
    """The job that was saved is gone by then, with the files of its state's schema."""
    run("submit", written(tmp_path, streams, "counts", TRANSFORM_WITH_STATE), "--wait")
    streams.send(80)
    streams.counted(f"{streams.source}-counts")
    run("savepoint", "create", "counts", "--name", "first")
    wider = written(tmp_path, streams, "wider", TRANSFORM_WITH_STATE, groups=8)
    refused = " ".join(run("savepoint", "restore", "first", wider, code=1).split())
    assert "that of counted (Spark's transformWithStateInPandasExec)" in refused
    assert "keep max_width=4" in refused
    same = written(tmp_path, streams, "same", TRANSFORM_WITH_STATE)
    run("savepoint", "restore", "first", same, "--yes", "--wait")
    streams.send(80)
    assert min(count for _, count in streams.counted(f"{streams.source}-same")) > 80 // KEYS
