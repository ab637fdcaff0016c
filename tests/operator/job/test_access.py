"""The account of PEs: made where it is missing, and again where it was deleted."""

import time

import pytest

from streamgraft_common.kube import Conflict, KubeClient, KubeConfig
from streamgraft_common.kube.client import Object
from streamgraft_operator.job.access import FRESH_SECONDS, AccessKeeper


class FakeClient(KubeClient):
    """Creates what is not there."""

    def __init__(self) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.there: set[str] = set()
        self.calls = 0

    async def create(self, path: str, body: Object, **query: str) -> Object:
        self.calls += 1
        name = f"{path}/{body['metadata']['name']}"
        if name in self.there:
            raise Conflict(409, "AlreadyExists", name)
        self.there.add(name)
        return body


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


async def test_account_and_binding_are_made_once(client: FakeClient, clock: list[float]) -> None:
    access = AccessKeeper(client)
    for _ in range(3):
        await access.ensure("ns")
    assert len(client.there) == client.calls == 2


async def test_what_was_deleted_is_made_again_within_a_minute(
    client: FakeClient, clock: list[float]
) -> None:
    access = AccessKeeper(client)
    await access.ensure("ns")
    client.there.pop()
    clock[0] += FRESH_SECONDS
    await access.ensure("ns")
    assert len(client.there) == 2


async def test_a_namespace_that_was_made_again_gets_them_at_once(
    client: FakeClient, clock: list[float]
) -> None:
    access = AccessKeeper(client)
    await access.ensure("ns")
    client.there.clear()
    access.forget("ns")
    await access.ensure("ns")
    assert len(client.there) == 2
