"""Whoever waits is told for what, on stderr, before it is over."""

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.test_cli_rights import invoked, words
from typer.testing import CliRunner

from streamgraft.cli import _building
from streamgraft.cli import _output as output
from streamgraft.cli._app import app
from streamgraft.cli._suite import _tell
from streamgraft_common.resources import ScenarioRun, SuiteStatus
from streamgraft_local import Cluster, Phase, Step
from streamgraft_local.progress import Report

__all__ = ["words"]


class Stopped(Exception):
    """Where the work would begin."""


@pytest.mark.parametrize("command", ["build", "plan", "submit"])
def test_a_build_is_told_before_its_driver_starts(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*_: object) -> Any:
        raise Stopped

    monkeypatch.setenv("STREAMGRAFT_JAVA", "java")
    monkeypatch.setattr(_building, "build_bundle", build)
    file = tmp_path / "app.py"
    file.touch()
    result = CliRunner().invoke(app, [command, str(file)])
    assert isinstance(result.exception, Stopped)
    assert "build app.py: started, Spark plans it" in result.stderr
    assert result.stdout == ""


def test_a_suite_tells_which_test_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, and how many have ended by then."""
    output.use("text")
    told = set[str]()
    run = ScenarioRun(name="a", seconds=1.5)
    for status in (
        SuiteStatus(pending=["a", "b"]),
        SuiteStatus(running=["a"], pending=["b"]),
        SuiteStatus(running=["a"], pending=["b"]),
        SuiteStatus(running=["b"], passed=["a"], runs=[run]),
        SuiteStatus(passed=["a", "b"], runs=[run]),
    ):
        _tell(status, told)
    assert capsys.readouterr().out.splitlines() == [
        "a runs; 0 of 2 tests have ended",
        "b runs; 1 of 2 tests have ended",
        "a passed after 1.5 s",
        "b passed",
    ]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("savepoint delete s", "Savepoint s goes: its copies are deleted first"),
        ("suite SUITE", "The last run of TestSuite t goes, with its pods and results"),
        ("suite SUITE", "TestSuite t submitted to namespace n of context c"),
    ],
)
def test_what_the_operator_does_is_told_before_it_is_done(
    command: str, line: str, words: dict[str, str], tmp_path: Path
) -> None:
    result, _ = invoked(command, words, tmp_path)
    assert line in result.output.splitlines()


def test_down_tells_what_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(self: Cluster, *, delete: bool, report: Report) -> None:
        report(Step("stop etcd", Phase.STARTED))
        raise Stopped

    monkeypatch.setattr(Cluster, "down", down)
    result = CliRunner().invoke(app, ["down"])
    assert "stop etcd: started" in result.stderr
