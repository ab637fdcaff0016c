"""Documents that commands print for programs, and which commands do."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import yaml
from tests.sdk.test_cli import description
from tests.sdk.test_cli_rights import invoked, words
from typer.testing import CliRunner

from streamgraft._builder import BuiltBundle
from streamgraft.cli import _build, _console
from streamgraft.cli._app import app
from streamgraft_local import Cluster, ComponentStatus

__all__ = ["words"]

PAGE = Path(__file__).parents[2] / "docs/operate/command-line.md"
KNOWN = {
    "kubernetes": "https://127.0.0.1:1",
    "kafka": "127.0.0.1:2",
    "prometheus": "http://127.0.0.1:3",
}


@pytest.fixture
def addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Those of an environment that is up; what runs of it is played."""
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path))
    status = ComponentStatus("kafka", 7, None, tmp_path / "kafka.log")
    monkeypatch.setattr(Cluster, "state", lambda self: SimpleNamespace(addresses=KNOWN))
    monkeypatch.setattr(Cluster, "status", lambda self: [status])
    monkeypatch.setattr(Cluster, "leftovers", lambda self: [7])
    monkeypatch.setattr(Cluster, "up", lambda self, report: None)
    known = {"api_server": KNOWN["kubernetes"], "kafka": KNOWN["kafka"]}
    return {
        **known,
        "prometheus": KNOWN["prometheus"],
        "kubeconfig": str(Cluster().kubeconfig),
    }


def printed(*arguments: str) -> tuple[Any, str]:
    """Return the document that a command prints, and what it tells people."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return yaml.safe_load(result.stdout), result.stderr


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_status_has_the_addresses_that_scripts_need(
    form: str, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the text has; none while nothing runs."""
    shown, _ = printed("status", "-o", form)
    assert shown["addresses"] == addresses
    assert [(item["name"], item["problem"]) for item in shown["components"]] == [("kafka", None)]
    text = CliRunner().invoke(app, ["status"]).stdout
    assert [address for address in addresses.values() if address not in text] == []
    monkeypatch.setattr(Cluster, "leftovers", lambda self: [])
    assert printed("status", "-o", form)[0]["addresses"] is None


def test_before_the_first_up_there_is_a_document_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["status", "-o", "json"])
    assert json.loads(result.stdout) == {"components": [], "addresses": None}
    assert (result.exit_code, "run `streamgraft up` first" in result.stderr) == (1, True)


def test_up_prints_where_things_are(
    addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines go to stderr then."""

    async def link(*_: object) -> str:
        return "https://console"

    monkeypatch.setattr(_console, "link", link)
    shown, told = printed("up", "-o", "json")
    assert shown == {"addresses": addresses, "console": "https://console"}
    assert f"Kafka       {addresses['kafka']}" in told.splitlines()


def test_build_prints_what_it_has_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description as in the bundle; no table is among it."""
    built = BuiltBundle(b"zip", description(), ["app.py"], ["a notice"])
    monkeypatch.setattr(_build, "built", lambda *_: built)
    target = tmp_path / "mine.zip"
    shown, told = printed("build", "app.py", "--out", str(target), "-o", "json")
    application = shown.pop("application")
    assert shown == {"bundle": str(target), "bytes": 3, "files": ["app.py"]}
    assert application == json.loads(description().model_dump_json(by_alias=True))
    assert target.read_bytes() == b"zip"
    assert "a notice" in told


def with_documents(command: Any, name: str = "") -> Iterator[str]:
    """Yield the names of a command's commands that take `-o json`."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from with_documents(inner, f"{name} {part}".strip())
    if any("-o" in item.opts for item in command.params):
        yield name


def test_the_page_names_each_command_that_prints_documents() -> None:
    section = PAGE.read_text().partition("**For programs.**")[2].partition("**When ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted(with_documents(typer.main.get_command(app)))


@pytest.mark.parametrize("command", ["watch typo --once", "watch typo -o json", "top typo"])
@pytest.mark.parametrize("there", [False, True])
def test_a_job_that_is_not_there_is_no_empty_table(
    command: str, there: bool, words: dict[str, str], tmp_path: Path
) -> None:
    result, _ = invoked(command.replace("typo", "j") if there else command, words, tmp_path)
    assert result.exit_code == (0 if there else 1), result.output
    assert ("there is no job typo in namespace n of context c" in result.output) is not there


def test_savepoints_of_a_job_that_was_never_there(words: dict[str, str], tmp_path: Path) -> None:
    """Those of one that is gone are listed: they outlive it."""
    result, _ = invoked("savepoint list typo", words, tmp_path)
    assert result.exit_code == 1
    assert "there is no job typo" in result.output
