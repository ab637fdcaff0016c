"""What operators find around them in a PE."""

import os
import signal
from pathlib import Path

import pytest

import streamgraft


def test_properties_are_those_of_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user").write_text("me\n")
    (tmp_path / "..data").mkdir()
    monkeypatch.setenv("STREAMGRAFT_APP_PROPERTIES", str(tmp_path))
    assert streamgraft.properties() == {"user": "me"}


def test_without_a_pe_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMGRAFT_APP_PROPERTIES", raising=False)
    monkeypatch.delenv("STREAMGRAFT_DATA_PATH", raising=False)
    assert streamgraft.properties() == {}
    assert streamgraft.data_path() == Path.cwd()


def test_data_path_is_the_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGRAFT_DATA_PATH", "/data")
    assert streamgraft.data_path() == Path("/data")


def test_a_pe_ends_itself_by_a_signal_to_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.delenv("STREAMGRAFT_DRIVER_PID", raising=False)
    streamgraft.shutdown_pe()
    assert sent == []
    monkeypatch.setenv("STREAMGRAFT_DRIVER_PID", "7")
    streamgraft.shutdown_pe()
    assert sent == [(7, signal.SIGUSR1)]
