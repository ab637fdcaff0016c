"""The account of PEs: made where it is missing, and again where it was deleted."""

import time

import pytest

from streamgraft_common.kube import Conflict, Forbidden, KubeClient, KubeConfig, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_operator.job.access import FRESH_SECONDS, AccessKeeper, AccountRefused


class FakeClient(KubeClient):
    """Creates what is not there, unless a quota forbids it."""

    def __init__(self) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.there: set[str] = set()
        self.calls = 0
        """Of those that create."""
        self.full = False

    async def get(self, path: str, **query: str) -> Object:
        if path not in self.there:
            raise NotFound(404, "NotFound", path)
        return {}

    async def create(self, path: str, body: Object, **query: str) -> Object:
        self.calls += 1
        if self.full:  # admission, before anybody looks whether it exists
            raise Forbidden(403, "Forbidden", "exceeded quota: few")
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


async def test_what_is_there_is_not_created(client: FakeClient, clock: list[float]) -> None:
    """A quota counts what is created before it is seen to exist, or refuses it."""
    await AccessKeeper(client).ensure("ns")
    client.full, client.calls = True, 0
    await AccessKeeper(client).ensure("ns")
    assert client.calls == 0


async def test_who_is_quicker_makes_them(
    client: FakeClient, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    await AccessKeeper(client).ensure("ns")

    async def unseen(path: str) -> None:
        return None

    monkeypatch.setattr(client, "find", unseen)
    await AccessKeeper(client).ensure("ns")


async def test_a_refusal_says_what_to_do(client: FakeClient, clock: list[float]) -> None:
    client.full = True
    with pytest.raises(AccountRefused, match=r"ServiceAccount streamgraft-pe.*exceeded quota: few"):
        await AccessKeeper(client).ensure("ns")


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
