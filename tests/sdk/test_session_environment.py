"""Environments of test sessions: one for each; what a killed one left, the next one ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamgraft.testing._environment import session_environment
from streamgraft_local import Cluster
from streamgraft_local.processes import members

PLAYED = """
import json, os, signal, sys
from streamgraft.testing._environment import session_environment
from streamgraft_local import Cluster
from streamgraft_local.processes import CLUSTER_VARIABLE, spawn

def up(cluster):
    home = cluster.home
    home.create()
    home.state_file.write_text(json.dumps({"id": cluster.spec.name}))
    environment = {**os.environ, CLUSTER_VARIABLE: cluster.spec.name}
    spawn(["sleep", "600"], home.log("kafka"), environment, home.record("kafka"))

Cluster.up = up
with session_environment() as cluster:
    print(cluster.spec.name, flush=True)
    sys.stdin.read()
"""
"""A session whose environment is one process, and which ends at the end of its input."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all environments."""
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path))
    monkeypatch.setattr(Cluster, "up", lambda cluster: cluster.home.create())
    return tmp_path


def started() -> tuple[subprocess.Popen[str], str]:
    """Start a session as above; return it and its environment's name."""
    command = [sys.executable, "-c", PLAYED]
    session = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert session.stdout is not None
    name = session.stdout.readline().strip()
    deadline = time.monotonic() + 10
    while not members(name):  # of one that is being started the environment is the session's
        assert time.monotonic() < deadline
    return session, name


def test_sessions_at_one_time_leave_each_other_alone(state: Path) -> None:
    with session_environment() as one:
        with session_environment() as other:
            assert other.spec.name != one.spec.name
        assert not other.home.root.exists()
        assert one.home.root.exists()
    assert list(state.glob("pytest-*")) == []


def test_a_session_that_fails_to_start_ends_its_own_environment_only(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_environment() as one:
        monkeypatch.setattr(Cluster, "up", lambda cluster: 1 // 0)
        with pytest.raises(ZeroDivisionError), session_environment():
            pass
        assert [path.name for path in state.glob("pytest-*/")] == [one.spec.name]


def test_the_next_session_ends_what_a_killed_one_left(state: Path) -> None:
    """Its processes and its folder, though they do not know that it was killed."""
    (killed, name), (running, other) = started(), started()
    killed.kill()
    killed.communicate()
    assert len(members(name)) == 1
    with session_environment():
        assert (members(name), len(members(other))) == ([], 1)
        assert list(state.glob(f"{name}*")) == []
    running.communicate()
    assert running.returncode == 0
    assert members(other) == []
    assert list(state.glob("pytest-*")) == []
