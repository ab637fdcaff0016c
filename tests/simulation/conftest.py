"""The API server as the contract tests see it: the fake one, and the real one."""

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_garbage_collector import FakeGarbageCollector
from tests.simulation.fake_kube_client import FakeKubeClient, FakeNetwork

from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_local import Cluster

WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class Api:
    """A client and a namespace of its own."""

    client: KubeClient
    namespace: str

    def path(self, plural: str, name: str = "") -> str:
        """Return the path of a collection or an object in the namespace."""
        group = {
            "parallelregions": "/apis/streamgraft.io/v1alpha1",
            "leases": "/apis/coordination.k8s.io/v1",
        }.get(plural, "/api/v1")
        tail = f"/{name}" if name else ""
        return f"{group}/namespaces/{self.namespace}/{plural}{tail}"

    async def gone(self, path: str) -> None:
        """Wait until there is no such object."""
        await self.until(path, lambda item: item is None)

    async def until(self, path: str, holds: Callable[[Object | None], object]) -> Any:
        """Wait until `holds` of the object (None: absent) is true."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                item = None
                with suppress(NotFound):
                    item = await self.client.get(path)
                if holds(item):
                    return item
                await asyncio.sleep(0.02)


@pytest.fixture
async def fake_api() -> AsyncIterator[Api]:
    """The fake API server with its garbage collector."""
    server = FakeApiServer(time.time, random.Random(1))
    collector = asyncio.ensure_future(_collect(FakeGarbageCollector(server)))
    yield Api(FakeKubeClient(server, FakeNetwork(random.Random(1))), "test")
    collector.cancel()


@pytest.fixture
async def real_api(without_operator: Cluster, kube: KubeClient) -> AsyncIterator[Api]:
    """The API server and the controller manager of the embedded environment.

    Its operator is stopped: it reports objects of no job.
    """
    api = Api(kube, f"contract-{uuid.uuid4().hex[:8]}")
    path = f"/api/v1/namespaces/{api.namespace}"
    await kube.create("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
    await api.until(f"{path}/serviceaccounts/default", lambda item: item is not None)
    yield api
    await kube.delete(path)


@pytest.fixture(params=["fake_api", pytest.param("real_api", marks=pytest.mark.integration)])
def api(request: pytest.FixtureRequest) -> Api:
    """Either of them."""
    api: Api = request.getfixturevalue(request.param)
    return api


async def _collect(collector: FakeGarbageCollector) -> None:
    while True:
        collector.sweep()
        await asyncio.sleep(0.02)
