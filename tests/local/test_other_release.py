"""A cluster whose `cluster.json` this release can't read: it has to be ended, and not joined."""

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgraft_local import Cluster, ClusterSpec, LocalError, Phase, Step, toolchain
from streamgraft_local.processes import CLUSTER_VARIABLE, Process, spawn, stop


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster whose tools are described in a way that we do not know."""
    made = Cluster(ClusterSpec(name="other", base=tmp_path))
    made.home.create()
    state = {"id": uuid.uuid4().hex, "spec": {"name": "other"}, "ports": {}, "tools": {"new": 1}}
    made.home.state_file.write_text(json.dumps(state))
    return made


@pytest.fixture
def running(cluster: Cluster) -> Iterator[list[Process]]:
    """Two of its processes, of which one is a component's."""
    marked = json.loads(cluster.home.state_file.read_text())["id"]
    environment = {**os.environ, CLUSTER_VARIABLE: marked}
    found = [
        spawn(["sleep", "600"], cluster.home.log(name), environment, cluster.home.record(name))
        for name in ("kafka", "a-pod")
    ]
    yield found
    stop(found, grace_seconds=0)


def test_down_ends_it(cluster: Cluster, running: list[Process]) -> None:
    """Its folder goes with it, but not before its processes."""
    deadline = time.monotonic() + 10
    while len(cluster.leftovers()) < 2:  # of one that is being started the environment is ours
        assert time.monotonic() < deadline
    steps: list[Step] = []
    cluster.down(delete=True, report=steps.append)
    assert [step.name for step in steps if step.phase is Phase.DONE] == [
        "stop kafka",
        f"delete {cluster.home.root}",
    ]
    assert [process.alive() for process in running] == [False, False]
    assert not cluster.home.root.exists()


@pytest.mark.usefixtures("running")
def test_up_refuses_to_start_a_second_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools: dict[str, Any] = {}
    monkeypatch.setattr(toolchain, "prepare", lambda report: tools)
    before = cluster.home.state_file.read_text()
    with pytest.raises(LocalError, match="another release runs: end it first with `streamgraft"):
        cluster.up()
    with pytest.raises(LocalError, match="another release runs"):
        cluster.status()
    assert cluster.home.state_file.read_text() == before


@pytest.mark.parametrize("text", ["", "[]", '{"id": 7}', '{"id": ""}', "{}"])
def test_what_says_no_id_marks_nothing(cluster: Cluster, text: str) -> None:
    cluster.home.state_file.write_text(text)
    assert cluster.leftovers() == []
    with pytest.raises(LocalError, match="run `streamgraft up` first"):
        cluster.state()
