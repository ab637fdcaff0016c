"""Where an input is, asked from functions that have an event loop and from those that have none."""

import asyncio
from pathlib import Path

import pytest

import streamgraft as sg
from streamgraft import _port_address
from streamgraft._port_address import PortAddress

FOUND = PortAddress("topic", "pe", "host")


@pytest.fixture
def pe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a PE."""
    monkeypatch.setenv("STREAMGRAFT_NAMESPACE", "n")
    monkeypatch.setenv("STREAMGRAFT_JOB", "j")


@pytest.mark.usefixtures("pe")
def test_a_loop_may_run_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a function that calls a service with a client of asyncio."""

    async def resolved(namespace: str, job: str, label: str) -> PortAddress:
        await asyncio.sleep(0)
        return FOUND

    async def called() -> PortAddress:
        return sg.resolve("words.0")

    monkeypatch.setattr(_port_address, "_resolved", resolved)
    assert asyncio.run(called()) == sg.resolve("words.0") == FOUND


@pytest.mark.usefixtures("pe")
def test_an_api_server_that_is_away_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By an exception that each application knows."""
    config = tmp_path / "config"
    config.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u,"
        " user: {}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(ConnectionError, match=r"words\.0 can't be resolved now"):
        sg.resolve("words.0")
