"""The command line, as far as it needs no cluster: arguments, messages, exit codes."""

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from streamgraft._builder import _zip
from streamgraft.cli._app import app, cluster_first
from streamgraft.cli._kubeconfig import merged
from streamgraft.cli._output import CommandError
from streamgraft.cli._submit import job_spec
from streamgraft.cli._watch import Snapshot, quantity, render
from streamgraft_common.adl import Adl, Region

RUN = CliRunner()


@pytest.fixture(autouse=True)
def nothing_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands find neither an embedded environment nor a kubeconfig of the user's."""
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def description() -> Adl:
    """Return the description of an application with a region and a parameter."""
    return Adl(
        name="flights",
        built_by="0.1.0",
        module="app",
        application="app",
        operators=[],
        streams=[],
        regions=[Region(name="enrich", key=["carrier"], max_width=4)],
        parameters={"url": "x"},
    )


def bundle(folder: Path, size: int = 0) -> Path:
    """Write a bundle, padded by incompressible bytes, and return its path."""
    file = folder / "flights.zip"
    content = description().model_dump_json(by_alias=True).encode()
    noise = random.Random(0).randbytes(size)
    file.write_bytes(_zip({"adl.json": content, "noise": noise}))
    return file


def failing(*arguments: str | Path) -> str:
    """Return what a command tells when it fails as expected, behind its progress."""
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    progress, error, rest = result.stderr.partition("error: ")
    assert all(re.match(r" *[0-9.]+ s  ", line) for line in progress.splitlines())
    return error + rest


def test_help_names_every_command() -> None:
    """The command line explains itself."""
    text = RUN.invoke(app, ["--help"]).output
    commands = "up down status kubeconfig build plan submit cancel scale watch logs top doctor"
    assert [name for name in commands.split() if f" {name} " not in text] == []


def test_start_is_light() -> None:
    """Help needs neither Spark nor an HTTP client: they take a second to load."""
    code = (
        "import sys; from streamgraft.cli._app import app;"
        "print([name for name in ('pyspark', 'aiohttp', 'cryptography') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr


def test_errors_of_an_application_are_shown_line_by_line(tmp_path: Path) -> None:
    """One line per error, exit code 1."""
    file = tmp_path / "app.py"
    file.write_text(
        "import streamgraft as sg\n"
        "app = sg.Application('flights')\n"
        "app.kafka_sink('a', input='x', topic='a')\n"
    )
    lines = failing("build", file).splitlines()
    assert lines == [
        f"error: {file}:2: the application has no source: add app.kafka_source(...)",
        f"error: {file}:3: 'a' reads stream 'x', which does not exist: there are none",
    ]
    assert failing("submit", file).splitlines() == lines


def test_what_a_call_refuses_has_its_line_and_a_remedy(tmp_path: Path) -> None:
    file = tmp_path / "called.py"
    file.write_text(
        "import streamgraft as sg\n"
        "app = sg.Application('called')\n"
        "@app.operator\n"
        "def words(lines):\n"
        "    return lines\n"
    )
    assert failing("build", file) == (
        f"error: {file}:3: the module can't be imported: TypeError: app.operator takes arguments by"
        " name: write @app.operator(...), in whose parentheses they stand\n"
    )


def test_bundles_that_cannot_be_submitted(tmp_path: Path) -> None:
    """Missing, corrupt, too large."""
    assert "there is no such file" in failing("submit", tmp_path / "nowhere.zip")
    for command in ("submit", "plan"):
        assert "name the Python file that holds the application" in failing(command, tmp_path)
    corrupt = tmp_path / "corrupt.zip"
    corrupt.write_text("no zip")
    assert "this is no bundle" in failing("submit", corrupt)
    assert "a ConfigMap carries 900,000" in failing("submit", bundle(tmp_path, 1_200_000))


@pytest.mark.parametrize("name", ["Flights", "x" * 64, "a/b"])
def test_job_names(tmp_path: Path, name: str) -> None:
    """The name becomes part of the names of pods and topics."""
    assert "is no job name" in failing("submit", bundle(tmp_path), "--name", name)


@pytest.mark.parametrize(
    ("parameters", "widths", "problem"),
    [
        (["ulr=y"], [], "flights has no parameter ulr: it has url"),
        (["url"], [], "--param url: write it as NAME=VALUE"),
        ([], ["enrich"], "--width enrich: write it as NAME=VALUE"),
        ([], ["elsewhere=2"], "no such region: it has enrich"),
        ([], ["enrich=0"], "use a number from 1 to 4"),
        ([], ["enrich=5"], "use a number from 1 to 4"),
        ([], ["enrich=two"], "use a number from 1 to 4"),
    ],
)
def test_values_that_do_not_fit_the_application(
    parameters: list[str], widths: list[str], problem: str
) -> None:
    """They are refused before anything is uploaded."""
    with pytest.raises(CommandError, match=problem.replace("(", r"\(")):
        job_spec(description(), "flights", parameters, widths)


def test_spec_has_only_what_was_asked_for() -> None:
    """So that another tool may own the rest of the Job."""
    assert job_spec(description(), "mine", [], []) == {
        "bundle": {"configMap": {"name": "mine-bundle"}}
    }
    assert job_spec(description(), "mine", ["url=a=b"], ["enrich=3"]) == {
        "bundle": {"configMap": {"name": "mine-bundle"}},
        "parameters": {"url": "a=b"},
        "regions": {"enrich": {"width": 3}},
    }
    assert job_spec(description(), "mine", [], [], "registry/mine:1") == {
        "bundle": {"configMap": {"name": "mine-bundle"}},
        "image": "registry/mine:1",
    }


def test_no_cluster_at_all(tmp_path: Path) -> None:
    """The message says what to do."""
    assert "run `streamgraft up`" in failing("submit", bundle(tmp_path))
    assert "run `streamgraft up`" in failing("watch", "--once")
    assert "run `streamgraft up`" in failing("kubeconfig")


def test_cluster_that_does_not_answer(tmp_path: Path) -> None:
    """A dead address is an error without a traceback."""
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(kubeconfig("dead", "http://127.0.0.1:1")))
    for command in (["cancel", "a"], ["scale", "a", "b", "2"], ["logs", "a"], ["watch"]):
        assert "no answer from the API server" in failing("--kubeconfig", file, *command)


@pytest.mark.parametrize("name", ["", "../other", "A", "job/region"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    """Without a name, a request to delete a job would be one to delete all of them."""
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(kubeconfig("dead", "http://127.0.0.1:1")))
    for command in (["cancel"], ["savepoint", "delete"], ["logs"], ["explain", "region"]):
        result = RUN.invoke(app, ["--kubeconfig", str(file), *command, name])
        assert (result.exit_code, "is no name of an object" in result.output) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["--context", "c", "watch", "-n", "ns"],
        ["watch", "--context", "c", "-n", "ns"],
        ["watch", "-n", "ns", "--context", "c"],
    ],
)
def test_the_cluster_may_be_named_anywhere(words: list[str]) -> None:
    """As with kubectl."""
    assert cluster_first(words) == ["--context", "c", "watch", "-n", "ns"]


def test_every_command_takes_a_context(tmp_path: Path) -> None:
    for command in (["watch", "--once"], ["savepoint", "list"], ["cancel", "job"], ["top"]):
        result = RUN.invoke(app, [*command, "--context=nope", "--kubeconfig", str(tmp_path / "no")])
        assert result.exit_code == 1
        assert result.output.startswith("error: no kubeconfig at")


def test_behind_two_dashes_nothing_is_an_option() -> None:
    assert cluster_first(["logs", "--", "--context", "x"]) == ["logs", "--", "--context", "x"]
    assert cluster_first(["watch", "--context"]) == ["--context", "watch"]


def test_unknown_context(tmp_path: Path) -> None:
    """A slip in --context."""
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(kubeconfig("one", "http://127.0.0.1:1")))
    answer = failing("--kubeconfig", file, "--context", "two", "cancel", "a")
    assert "has no usable context two" in answer


def kubeconfig(name: str, server: str) -> dict[str, Any]:
    """Return a kubeconfig as the embedded environment writes it."""
    return {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {"token": name}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        "current-context": name,
    }


def test_merging_a_kubeconfig() -> None:
    """Others' entries and the current context stay; merging again replaces our own entries."""
    into = kubeconfig("work", "https://work")
    once = merged(into, kubeconfig("streamgraft-default", "https://old"))
    twice = merged(once, kubeconfig("streamgraft-default", "https://new"))
    assert [item["name"] for item in twice["clusters"]] == ["work", "streamgraft-default"]
    assert twice["clusters"][1]["cluster"]["server"] == "https://new"
    assert [item["name"] for item in twice["users"]] == ["admin", "streamgraft-default"]
    assert twice["users"][0] == into["users"][0]
    assert twice["contexts"][1]["context"]["user"] == "streamgraft-default"
    assert twice["current-context"] == "work"
    assert merged({}, kubeconfig("streamgraft-default", "x"))["current-context"] == (
        "streamgraft-default"
    )


def test_tables_of_watch() -> None:
    """Jobs, regions with their signals, and processing elements in the order of their ids."""
    snapshot = Snapshot(
        jobs=[
            {
                "metadata": {"name": "flights"},
                "spec": {"bundle": {"file": "/x"}},
                "status": {"phase": "Healthy", "peCount": 3, "readyPeCount": 3},
            },
            {"metadata": {"name": "fresh"}, "spec": {"bundle": {"file": "/x"}}},
        ],
        regions=[
            {
                "metadata": {"name": "flights-enrich"},
                "spec": {
                    "job": "flights", "region": "enrich", "width": 2, "maxWidth": 4, "key": ["a"],
                },
                "status": {
                    "width": 1,
                    "conditions": [{"type": "Resizing", "status": "True", "reason": "HandOver"}],
                },
            },
            {
                "metadata": {"name": "flights-full"},
                "spec": {
                    "job": "flights", "region": "full", "width": 4, "maxWidth": 4, "key": ["a"],
                },
                "status": {
                    "width": 1,
                    "conditions": [
                        {"type": "Ready", "status": "True", "reason": "Serving"},
                        {"type": "Resizing", "status": "False", "reason": "RolledBack"},
                    ],
                },
            },
            {
                "metadata": {"name": "flights-night"},
                "spec": {
                    "job": "flights", "region": "night", "width": 0, "maxWidth": 4, "key": ["a"],
                },
                "status": {
                    "conditions": [
                        {"type": "Ready", "status": "True", "reason": "Asleep"},
                        {"type": "Asleep", "status": "True", "reason": "NoChannels"},
                    ],
                },
            },
        ],
        elements=[element(10), element(2)],
        signals={("total_lag", "flights-enrich"): 12345.0, ("demand", "flights-enrich"): 1.5},
    )  # fmt: skip
    console = Console(width=120, record=True)
    with console.capture() as capture:
        console.print(render(snapshot))
    lines = [" ".join(line.split()) for line in capture.get().splitlines()]
    assert "flights Healthy 3/3" in lines
    assert "fresh Pending 0/0" in lines
    assert "flights-enrich 2 1 4 resizing 12,345 1.50" in lines
    assert "flights-full 4 1 4 rolled back" in lines
    assert "flights-night 0 0 4 asleep" in lines
    first, second = (
        lines.index(f"flights-{number} enrich 1 0, 2 0 Running 1") for number in (2, 10)
    )
    assert first < second


def element(number: int) -> dict[str, Any]:
    """Return a processing element that is to take over a shard."""
    return {
        "metadata": {"name": f"flights-{number}"},
        "spec": {
            "job": "flights", "peId": number, "stageName": "enrich", "channel": 1, "shards": [0, 2],
        },
        "status": {
            "phase": "Running",
            "launchCount": 1,
            "runtime": {"shards": {"0": {"state": "Running", "epoch": 1}}},
        },
    }  # fmt: skip


def test_watch_shows_a_query_per_shard_that_was_not_planned() -> None:
    """If nothing worse is to be told."""
    strange = element(2)
    strange["status"]["runtime"]["apart"] = "it has a watermark"
    failing = {**element(3), "status": {**strange["status"], "message": "shard 0 fails"}}
    console = Console(width=160, record=True)
    with console.capture() as capture:
        console.print(render(Snapshot(jobs=[], regions=[], elements=[strange, failing])))
    assert "a query per shard: it has a watermark" in capture.get()
    assert "shard 0 fails" in capture.get()
    assert capture.get().count("a query per shard") == 1


@pytest.mark.parametrize(("text", "number"), [("12", 12.0), ("1500m", 1.5), ("-250m", -0.25)])
def test_quantities_of_metrics(text: str, number: float) -> None:
    """Metrics are whole or in thousandths."""
    assert quantity(text) == number
