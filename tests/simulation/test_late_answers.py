"""Answers to writes that come later than the news of what was written, or that are of another
object by the same name: against the fake API server and the real one."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.simulation.conftest import WAIT_SECONDS, Api

from streamgraft_common.kube import Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import PROCESSING_ELEMENT, Stopped
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.coordinator import Coordinator
from streamgraft_operator.pe import commands
from streamgraft_operator.pe.launches import Relaunch


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.fixture
async def stores(api: Api) -> AsyncIterator[Callable[[], Store]]:
    """A function that makes caches of the ConfigMaps."""
    running = []

    def start() -> Store:
        store = Store(api.client, api.path("configmaps"))
        running.append(asyncio.create_task(store.run()))
        return store

    yield start
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_what_the_watch_deleted_is_not_brought_back(
    api: Api, stores: Callable[[], Store]
) -> None:
    store = stores()
    await store.synced.wait()
    answer = await api.client.create(api.path("configmaps"), config_map("c"))
    await until(lambda: store.get(key_of(answer)))
    await api.client.delete(api.path("configmaps", "c"))
    await until(lambda: store.get(key_of(answer)) is None)
    store.observe(answer)
    assert store.get(key_of(answer)) is None


async def test_what_was_gone_before_the_list_is_not_brought_back(
    api: Api, stores: Callable[[], Store]
) -> None:
    answer = await api.client.create(api.path("configmaps"), config_map("c"))
    await api.client.delete(api.path("configmaps", "c"))
    store = stores()
    await store.synced.wait()
    store.observe(answer)
    assert store.get(key_of(answer)) is None
    again = await api.client.create(api.path("configmaps"), config_map("c"))
    store.observe(again)
    assert store.get(key_of(again)) == again


def cache_of(api: Api) -> Collection:
    """Return a cache of PEs that no watch fills."""
    return Collection(api.client, PROCESSING_ELEMENT, [api.namespace])


def writer(api: Api, cache: Collection | None = None) -> Coordinator:
    """Return a writer of PEs; one that knows none yet asks the API server."""
    return Coordinator(api.client, PROCESSING_ELEMENT, cache or cache_of(api))


async def created(api: Api, name: str) -> Object:
    """Create a PE, with its own name as a label."""
    manifest = {
        "apiVersion": PROCESSING_ELEMENT.api_version,
        "kind": PROCESSING_ELEMENT.kind,
        "metadata": {"name": name, "namespace": api.namespace, "labels": {"own": name}},
        "spec": {"job": "job", "peId": 0, "stageName": "pe-0"},
    }
    return await api.client.create(PROCESSING_ELEMENT.path(api.namespace), manifest)


async def test_what_no_watch_has_shown_is_looked_up(api: Api) -> None:
    first, second = [await created(api, name) for name in ("job-0", "job-1")]
    cache = cache_of(api)
    await writer(api, cache).refresh(api.namespace, "own=job-1")
    assert cache.get(key_of(first)) is None
    assert cache.get(key_of(second)) == second


async def launched_once(api: Api) -> Object:
    """Create a PE whose launch count is 1."""
    assert await commands.launch(writer(api), await created(api, "job-0"), Relaunch("Created"), 0.0)
    return await api.client.get(PROCESSING_ELEMENT.path(api.namespace, "job-0"))


async def test_what_was_seen_of_a_deleted_pe_is_not_said_of_the_next_of_its_name(api: Api) -> None:
    """Both are at launch 1; a pod that is gone was the first one's."""
    path = PROCESSING_ELEMENT.path(api.namespace, "job-0")
    seen = await launched_once(api)
    await api.client.delete(path)
    await launched_once(api)
    write = writer(api)
    assert not await commands.launch(write, seen, Relaunch("PodDeleted"), 0.0)
    await commands.report(write, seen, "job-0-1", "Running", "")
    stopped = Stopped.model_validate({"reason": "PodDeleted", "version": "v"})
    assert await commands.stop(write, seen, stopped, "the policy allows no other") is None
    status = (await api.client.get(path))["status"]
    assert (status["launchCount"], status["launchReason"]) == (1, "Created")
    assert "pod" not in status
    assert "stopped" not in status


async def test_what_was_seen_of_a_pe_is_said_of_it_once(api: Api) -> None:
    seen = await launched_once(api)
    write = writer(api)
    await commands.report(write, seen, "job-0-1", "Running", "")
    assert await commands.launch(write, seen, Relaunch("PodDeleted"), 0.0)
    assert not await commands.launch(write, seen, Relaunch("PodDeleted"), 0.0)
    status = (await api.client.get(PROCESSING_ELEMENT.path(api.namespace, "job-0")))["status"]
    assert (status["launchCount"], status["launchReason"]) == (2, "PodDeleted")
