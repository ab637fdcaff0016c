"""The pytest plugin, in a pytest of its own as users run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgraft.cli._app import app

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
import pytest
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

@pytest.mark.live
def test_needs_an_environment(environment):
    pass

def test_needs_nothing():
    pass
"""


def pytest_run(
    folder: Path, test: str, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run one test file of a project; all of its marks have to be known."""
    (folder / "test_app.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
    command += ["--strict-markers", *options, str(folder)]
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
    home = str(tmp_path / "state")
    result = pytest_run(tmp_path, BROKEN, "-m", "live or not live", STREAMGRAFT_HOME=home)
    assert result.returncode == pytest.ExitCode.INTERRUPTED, result.stdout + result.stderr
    names = re.findall(r"(pytest-[0-9a-f]{8}) (?:fails to start|ends, delete=True)", result.stdout)
    assert len(names) == 2
    assert names[0] == names[1]
    assert list((tmp_path / "state").glob("pytest-*")) == []


@pytest.mark.parametrize(
    ("options", "ends"),
    [((), "1 passed, 1 skipped"), (("-m", "not live"), "1 passed, 1 deselected")],
)
def test_live_tests_run_only_where_they_are_asked_for(
    tmp_path: Path, options: tuple[str, ...], ends: str
) -> None:
    """In a project of whatever kind: plain pytest starts no environment."""
    result = pytest_run(tmp_path, BROKEN, "-rs", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    assert ends in result.stdout
    assert ("`streamgraft test --live`, or pytest with -m live" in result.stdout) == (not options)


@pytest.mark.parametrize(
    ("options", "given"), [((), []), (("--live",), ["-m", "live or not live"])]
)
def test_the_command_is_pytest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], given: list[str]
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("streamgraft.cli._test.subprocess.run", run)
    CliRunner().invoke(app, ["test", str(tmp_path), *options])
    assert commands == [[sys.executable, "-m", "pytest", *given]]


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
