"""Namespaces that the operator watches by name: one that must not be read holds up no other."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from streamgraft_common.kube import Forbidden, Gone, KubeClient, KubeConfig, NotFound, store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.names import LABEL_JOB
from streamgraft_common.resources import IMPORT, JOB, PROCESSING_ELEMENT, TEST_SUITE
from streamgraft_operator import assembly
from streamgraft_operator.kit import caches as kit
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.settings import Settings


class FakeClient(KubeClient):
    """Lists an object of each kind in each namespace, unless it refuses; watches tell nothing."""

    def __init__(self) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.refused = {"/namespaces/b/"}
        """Parts of paths that must not be listed."""
        self.undefined = set[str]()
        """Paths of kinds that nobody has defined."""

    async def list(
        self, path: str, selectors: Mapping[str, str], *, metadata_only: bool = False
    ) -> Object:
        if any(part in path for part in self.refused):
            raise Forbidden(403, "Forbidden", f"{path} is forbidden")
        if path in self.undefined:
            raise NotFound(404, "NotFound", "the server could not find the requested resource")
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        metadata = {"name": "one", "namespace": namespace, "resourceVersion": "1"}
        spec = {"job": "one", "scaleTargetRef": {"kind": "Deployment", "name": "one"}}
        item: Object = {"metadata": metadata, "spec": spec}
        return {"metadata": {"resourceVersion": "1"}, "items": [item]}

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[tuple[str, Object]]:
        await asyncio.Event().wait()
        yield "BOOKMARK", {}


@contextmanager
def run(caches: Caches) -> Iterator[None]:
    """Keep caches for a while."""
    task = asyncio.ensure_future(caches.run())
    yield
    task.cancel()


async def until_some(told: list[tuple[Key, bool]]) -> None:
    """Wait until listeners were told of something."""
    while not told:
        await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "REFUSAL_SECONDS", 0.3)


async def test_a_namespace_that_is_refused_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeClient()
    caches = Caches(client, ("a", "b"))
    with run(caches), caplog.at_level(logging.WARNING, logger=kit.log.name):
        await asyncio.wait_for(caches.synced(), 5)
        assert caches.jobs.get(("a", "one"))
        assert caches.jobs.get(("b", "one")) is None
    (warning,) = [record.message for record in caplog.records if record.name == kit.log.name]
    assert warning.startswith("namespace b is left out")


async def test_while_all_namespaces_are_refused_there_is_nothing_to_begin_with(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a role of before, which lacks a kind: to say that all is well would be wrong."""
    monkeypatch.setattr(kit, "REFUSAL_SECONDS", 0.05)
    monkeypatch.setattr(kit, "UNLISTED_SECONDS", 0.2)
    client = FakeClient()
    client.refused = {"/testsuites"}
    caches = Caches(client, ("a", "b"))
    with run(caches), caplog.at_level(logging.WARNING, logger=kit.log.name):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(caches.synced(), 0.5)
        client.refused = {"/namespaces/b/"}
        await asyncio.wait_for(caches.synced(), 10)
    told = [record.message for record in caplog.records if record.name == kit.log.name]
    assert any("must not list its testsuites.streamgraft.io:" in text for text in told)
    assert any("testsuites.streamgraft.io in namespace a: 403" in text for text in told)


class EmptyClient(FakeClient):
    """Its API server has no objects."""

    async def list(
        self, path: str, selectors: Mapping[str, str], *, metadata_only: bool = False
    ) -> Object:
        return {**await super().list(path, selectors, metadata_only=metadata_only), "items": []}


async def test_it_leads_when_all_was_listed_and_tells_what_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator that does nothing must not look as if it were well."""
    monkeypatch.setattr(kit, "UNLISTED_SECONDS", 0.2)
    client, stopping = EmptyClient(), asyncio.Event()
    client.refused, client.undefined = {IMPORT.path()}, {TEST_SUITE.path()}
    running = asyncio.ensure_future(assembly.run(client, Settings("b:9092", {}, "image"), stopping))
    await asyncio.sleep(0.5)
    told = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert told
    assert "testsuites.streamgraft.io: 404" in told[0]
    assert "apply deploy/crds of this release" in told[0]
    assert "imports.streamgraft.io: 403" in told[0]
    assert "apply the roles of this release" in told[0]
    assert "jobs.streamgraft.io" not in told[0]
    assert leading() == 0
    client.refused.clear()
    client.undefined.clear()
    async with asyncio.timeout(10):
        while not leading():
            await asyncio.sleep(0.05)
        stopping.set()
        await running
    assert leading() == 0


def leading() -> float | None:
    """Return what Prometheus reads."""
    return metrics.REGISTRY.get_sample_value("streamgraft_operator_leading")


async def test_it_is_admitted_as_a_whole_when_it_can_be_read() -> None:
    """PEs without their Job would be taken for strays."""
    client = FakeClient()
    caches, told = Caches(client, ("a", "b")), list[tuple[Key, bool]]()

    def listener(key: Key, old: Object | None, new: Object | None) -> None:
        told.append((key, caches.jobs.get(key) is not None))

    with run(caches):
        await asyncio.wait_for(caches.synced(), 5)
        caches.processing_elements.listen(listener)
        client.refused = {JOB.path("b")}
        await asyncio.sleep(1)
        assert not caches.processing_elements.get(("b", "one"))
        assert len(list(caches.processing_elements.items())) == 1
        assert not told
        client.refused = set()
        await asyncio.wait_for(until_some(told), 10)
        assert told == [(("b", "one"), True)]
        assert len(list(caches.processing_elements.items())) == 2
        assert caches.consistent_regions_by_job.get(("b", "one"))


async def test_a_namespace_that_is_refused_for_a_moment_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server that has just started does not know all rights."""
    monkeypatch.setattr(kit, "REFUSAL_SECONDS", 3.0)
    client = FakeClient()
    client.refused = {PROCESSING_ELEMENT.path("b")}
    caches = Caches(client, ("a", "b"))
    with run(caches):
        asyncio.get_running_loop().call_later(0.05, client.refused.clear)
        await asyncio.wait_for(caches.synced(), 30)
        assert caches.jobs.get(("b", "one"))


async def test_all_namespaces_are_waited_for_if_none_is_named() -> None:
    """There is nothing else to look after."""
    client = FakeClient()
    client.refused = {JOB.path()}
    caches = Caches(client, ())
    with run(caches), pytest.raises(TimeoutError):
        await asyncio.wait_for(caches.synced(), 0.5)


async def test_what_a_watch_would_not_tell_of_stays_out() -> None:
    """The name of a pod was taken by somebody else's: nobody would tell that it goes."""
    caches = Caches(FakeClient(), ())
    metadata = {"name": "one", "namespace": "a", "resourceVersion": "1"}
    caches.pods.observe({"metadata": metadata})
    caches.pods.observe({"metadata": {**metadata, "name": "two", "labels": {LABEL_JOB: "j"}}})
    assert [item["metadata"]["name"] for item in caches.pods.items()] == ["two"]


class RestoredClient(FakeClient):
    """Its API server is refused once, and then has an older state."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = set()
        self.lists = 0

    async def list(
        self, path: str, selectors: Mapping[str, str], *, metadata_only: bool = False
    ) -> Object:
        found = await super().list(path, selectors, metadata_only=metadata_only)
        if path.endswith("/jobs"):
            self.lists += 1
            found["metadata"]["resourceVersion"] = "100" if self.lists == 1 else "50"
        return found

    async def watch(self, path: str, *_: Any, **__: Any) -> AsyncIterator[tuple[str, Object]]:
        if path.endswith("/jobs") and self.lists == 1:
            raise Gone(410, "Expired", "too old")
        await asyncio.Event().wait()
        yield "BOOKMARK", {}


async def test_all_that_is_remembered_goes_when_etcd_was_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Generations and versions come again with other content, and much is known by them."""
    monkeypatch.setattr(store, "FIRST_PAUSE_SECONDS", 0.01)
    client, begun = RestoredClient(), 0

    async def played(*_: object) -> None:
        nonlocal begun
        begun += 1
        async with asyncio.TaskGroup() as group:
            caches = group.create_task(Caches(client, ()).run())
            await asyncio.sleep(0.5)
            caches.cancel()

    monkeypatch.setattr(assembly, "_run", played)
    await assembly.run(client, Settings("b:9092", {}, "image"), asyncio.Event())
    assert begun == 2
    assert client.lists == 3
