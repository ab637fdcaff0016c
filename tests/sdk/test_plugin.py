"""The pytest plugin, in a pytest of its own as users run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LENIENT = """
import streamgraft as sg
from pyspark.sql import functions as F

app = sg.Application("lenient", spark_conf={"spark.sql.ansi.enabled": "false"})
texts = app.kafka_source("texts", topic="texts", schema="text string")

@app.operator(inputs=texts)
def numbers(rows):
    return rows.select(F.col("text").cast("int").alias("number"))

app.kafka_sink("result", input=numbers, topic="numbers")
"""
USES_SETTINGS = """
def test_texts_that_are_no_numbers_are_null(graph):
    graph.run(texts=[{"text": "1"}, {"text": "x"}]).expect("numbers", [{"number": 1}, {}])
"""
CLOCK = """
import streamgraft as sg
from pyspark.sql import functions as F

app = sg.Application("clock")
times = app.kafka_source("times", topic="times", schema="time timestamp")

@app.operator(inputs=times)
def hours(rows):
    later = F.udf(lambda time: time.hour + 1, "int")
    return rows.select(F.hour("time").alias("hour"), later("time").alias("next"))

app.kafka_sink("result", input=hours, topic="hours")
"""
USES_TIMES = """
import datetime

def test_a_time_without_a_zone_is_in_utc(graph):
    noon = datetime.datetime(2026, 1, 1, 12)
    results = graph.run(times=[{"time": noon}])
    results.expect("hours", [{"hour": 12, "next": 13}])
    assert results.rows("times") == [{"time": noon}]
"""
TELLS_ITS_ZONE = """
import os
import time

def pytest_unconfigure():
    print("at the end", os.environ["TZ"], time.tzname[0])
"""
BROKEN = """
import streamgraft_local

class Broken:
    def __init__(self, spec):
        self.name = spec.name

    def up(self):
        print(f"{self.name} fails to start")
        raise KeyboardInterrupt

    def down(self, *, delete):
        print(f"{self.name} ends, delete={delete}")

streamgraft_local.Cluster = Broken

def test_needs_an_environment(environment):
    pass
"""


def pytest_run(folder: Path, test: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one test file of a project."""
    (folder / "test_app.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(folder)]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )


@pytest.mark.integration
def test_operators_run_with_the_application_s_settings(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LENIENT)
    result = pytest_run(tmp_path, USES_SETTINGS)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.integration
def test_naive_times_are_those_of_utc(tmp_path: Path) -> None:
    """In this process and in Spark's workers, wherever the developer is."""
    (tmp_path / "app.py").write_text(CLOCK)
    (tmp_path / "conftest.py").write_text(TELLS_ITS_ZONE)
    result = pytest_run(tmp_path, USES_TIMES, TZ="America/New_York")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "at the end America/New_York EST" in result.stdout


def test_an_environment_that_is_interrupted_while_it_starts_ends(tmp_path: Path) -> None:
    result = pytest_run(tmp_path, BROKEN, STREAMGRAFT_HOME=str(tmp_path / "state"))
    assert result.returncode == pytest.ExitCode.INTERRUPTED, result.stdout + result.stderr
    names = re.findall(r"(pytest-[0-9a-f]{8}) (?:fails to start|ends, delete=True)", result.stdout)
    assert len(names) == 2
    assert names[0] == names[1]
    assert list((tmp_path / "state").glob("pytest-*")) == []


def test_the_plugin_itself_imports_nothing_of_spark() -> None:
    """Every pytest of an installation loads it."""
    code = (
        "import sys, streamgraft.testing.plugin\n"
        "assert 'pyspark' not in sys.modules\n"
        "from streamgraft.testing import GraphTest, Results, Rows\n"
        "assert 'pyspark.sql' in sys.modules\n"
        "assert not hasattr(streamgraft.testing, 'GraphTests')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
