"""The pytest plugin, in a pytest of its own as users run it."""

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


def pytest_run(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Run one test file of a project."""
    (folder / "test_app.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.integration
def test_operators_run_with_the_application_s_settings(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LENIENT)
    result = pytest_run(tmp_path, USES_SETTINGS)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_environment_that_is_interrupted_while_it_starts_ends(tmp_path: Path) -> None:
    result = pytest_run(tmp_path, BROKEN)
    assert result.returncode == pytest.ExitCode.INTERRUPTED, result.stdout + result.stderr
    assert "pytest ends, delete=True" in result.stdout
