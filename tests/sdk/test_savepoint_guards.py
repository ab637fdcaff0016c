"""Savepoints that are not to be deleted, that go, and names that are not theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from streamgraft.cli import _savepoint
from streamgraft.cli._app import app
from streamgraft.cli._cluster import Cluster
from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
BEGINS: dict[str, Any] = {"metadata": {"name": "late"}, "spec": {"savepoint": {"name": "first"}}}


class Objects(KubeClient):
    """A cluster with the savepoint `first`, and a job."""

    def __init__(self, job: Object, **metadata: str) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        born = {"creationTimestamp": "2026-01-01T00:00:00Z"}
        self.savepoint: Object | None = {
            "metadata": {"name": "first", **born, **metadata},
            "spec": {"job": "flights"},
            "status": {"phase": "Completed"},
        }
        self._job = job

    async def find(self, path: str, **query: str) -> Object | None:
        """Return the savepoint."""
        return self.savepoint

    async def get(self, path: str, **query: str) -> Object:
        """Return all objects of a kind."""
        return {"items": [self._job if path.endswith("/jobs") else self.savepoint]}

    async def delete(self, path: str, **query: str) -> Object:
        """Delete the savepoint."""
        self.savepoint = None
        return {}


def run(client: Objects, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """Run a command about savepoints."""

    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[Cluster]:
        yield Cluster(client, "default")

    monkeypatch.setattr(_savepoint, "connected", connected)
    return CliRunner().invoke(app, ["savepoint", *arguments], env={"COLUMNS": "200"})


def test_one_that_a_job_starts_from_is_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shards would wait for ever."""
    client = Objects(BEGINS)
    result = run(client, monkeypatch, "delete", "first")
    assert result.exit_code == 1
    assert "job late starts from savepoint first" in " ".join(result.output.split())
    assert client.savepoint


@pytest.mark.parametrize(
    "job",
    [
        {**BEGINS, "status": {"restored": True}},
        {**BEGINS, "metadata": {"name": "late", **GOING}},
        {**BEGINS, "spec": {"savepoint": {"name": "second"}}},
        {**BEGINS, "spec": {}},
    ],
)
def test_one_that_no_job_needs_is_deleted(job: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Objects(job)
    assert run(client, monkeypatch, "delete", "first").exit_code == 0
    assert client.savepoint is None


def test_the_list_tells_which_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Completed" in run(Objects(BEGINS), monkeypatch, "list").output
    going = run(Objects(BEGINS, **GOING), monkeypatch, "list").output
    assert "Deleting" in going
    assert "Completed" not in going


@pytest.mark.parametrize("name", ["flights-all-cut-3", "flights-all-rollback-12"])
def test_names_of_cuts_and_rollbacks_are_not_for_users(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processing elements remove the files of what has the name of an earlier cut."""
    result = run(Objects(BEGINS), monkeypatch, "create", "flights", "--name", name)
    assert result.exit_code == 1
    assert "choose another one" in " ".join(result.output.split())


def test_the_list_says_why_there_is_no_savepoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a column that it has only if one of them has something to say."""
    client = Objects(BEGINS)
    assert "Message" not in run(client, monkeypatch, "list").output
    assert client.savepoint
    client.savepoint["status"] = {"phase": "Failed", "message": "no space left"}
    failed = run(client, monkeypatch, "list").output
    assert "Message" in failed
    assert "no space left" in failed
