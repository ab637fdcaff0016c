"""Credentials of repositories for savepoints that go after their Secret."""

import time
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from streamgraft_common.kube import KubeClient, KubeConfig, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import CheckpointRepository
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kit.external_calls import ExternalCalls
from streamgraft_operator.savepoint import repositories as module
from streamgraft_operator.savepoint.repositories import Repositories
from streamgraft_operator.settings import Settings

SETTINGS = Settings(bootstrap_servers="", checkpoint_volume={}, image="")
S3 = {"bucket": "copies", "endpoint": "http://localhost:1", "secret": "keys"}


class OneSecret(KubeClient):
    """A cluster with one Secret, or none."""

    def __init__(self) -> None:
        super().__init__(KubeConfig("http://127.0.0.1:1"))
        self.key: str | None = "old"
        self.reads = 0

    async def get(self, path: str, **query: str) -> Object:
        """Return the Secret."""
        self.reads += 1
        if self.key is None:
            raise NotFound(404, "NotFound", path)
        return {"data": {"access-key": b64encode(self.key.encode()).decode()}}


class Marked:
    """In the place of a Collector: notes what was removed by which credentials."""

    by: list[dict[str, str]] = []

    def __init__(self, credentials: dict[str, str], _: str) -> None:
        self._credentials = credentials

    def remove(self, *_: str) -> None:
        self.by.append(self._credentials)

    def collect(self, _: float) -> int:
        return 0


def savepoint(*, deleted: bool = False, **repository: Any) -> Object:
    pe = {"checkpointRepository": repository} if repository else {}
    metadata: Object = {"name": "first", "namespace": "ns", "uid": "uid"}
    if deleted:
        metadata["deletionTimestamp"] = to_rfc3339(time.time())
    job = {"bundle": {"file": "/b"}, "processingElement": pe}
    return {"metadata": metadata, "spec": {"job": "job"}, "status": {"jobSpec": job}}


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Have no real repository."""
    monkeypatch.setattr(module, "open_store", lambda _, __, credentials, ___: credentials)
    monkeypatch.setattr(module, "Collector", Marked)
    monkeypatch.setattr(Marked, "by", [])
    return Marked.by


async def test_a_savepoint_is_removed_with_what_the_secret_said_last(
    marked: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a namespace is deleted, which takes its Secrets first."""
    client = OneSecret()
    repositories = Repositories(client, ExternalCalls(), SETTINGS)
    for _ in range(3):
        await repositories.remember(savepoint(s3=S3))
    assert client.reads == 1, "there are many savepoints, each looked at every minute"
    monkeypatch.setattr(module, "REMEMBERED_SECONDS", 0.0)
    client.key = "new"
    await repositories.remember(savepoint(s3=S3))
    client.key = None
    await repositories.remember(savepoint(s3=S3))
    assert await repositories.remove(savepoint(deleted=True, s3=S3)) == ""
    assert marked == [{"access-key": "new"}]


async def test_an_operator_that_never_saw_the_secret_says_so(marked: list[dict[str, str]]) -> None:
    client = OneSecret()
    client.key = None
    repositories = Repositories(client, ExternalCalls(), SETTINGS)
    await repositories.remember(savepoint(s3=S3))
    left = await repositories.remove(savepoint(deleted=True, s3=S3))
    assert "the credentials of its repository are gone" in left
    assert marked == []


async def test_a_savepoint_is_removed_where_it_is_though_the_default_is_another_place_by_now(
    marked: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def store(repository: CheckpointRepository, *_: object) -> dict[str, str]:
        opened.append(repository.s3.bucket if repository.s3 else "")
        return {}

    monkeypatch.setattr(module, "open_store", store)
    today = CheckpointRepository.model_validate({"s3": {"bucket": "later"}})
    repositories = Repositories(OneSecret(), ExternalCalls(), replace(SETTINGS, repository=today))
    item = savepoint(deleted=True)
    item["status"]["repository"] = {"s3": {"bucket": "first"}}
    assert await repositories.remove(item) == ""
    item["status"]["repository"] = {}
    assert await repositories.remove(item) == ""
    assert opened == ["first"], "then there was none, so nothing is to be removed"


async def test_nothing_is_read_for_savepoints_without_a_repository() -> None:
    client = OneSecret()
    await Repositories(client, ExternalCalls(), SETTINGS).remember(savepoint())
    assert client.reads == 0
