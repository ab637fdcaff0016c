"""A namespace per test, an operator that runs in the test, and PEs played by hand."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.operator.integration.accounts import Account
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World

from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.resources import JOB
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_local import Cluster
from streamgraft_operator import assembly
from streamgraft_operator.settings import Settings


@pytest.fixture
async def world(without_operator: Cluster, kube: KubeClient) -> AsyncIterator[World]:
    """A namespace of its own."""
    async with new_world(kube) as world:
        yield world


@asynccontextmanager
async def new_world(kube: KubeClient) -> AsyncIterator[World]:
    """Make a namespace. When its operator and its player are gone, somebody must tidy up."""
    namespace = f"operator-{uuid.uuid4().hex[:8]}"
    await kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    world = World(kube, namespace)
    yield world
    if await kube.find(f"/api/v1/namespaces/{namespace}") is None:
        return  # the test has deleted it
    for name in await world.names(JOB, ""):
        path = JOB.path(namespace, name)
        await kube.patch(path, {"metadata": {"finalizers": None}})
        await kube.delete(path)
    await kube.request("DELETE", POD.path(namespace), body={"gracePeriodSeconds": 0})
    await kube.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def kafka(cluster: Cluster) -> AdminClient:
    """An administrator of the cluster's Kafka."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def source_topic(kafka: AdminClient, world: World) -> str:
    """The source topic that `application(world.namespace)` reads."""
    return create_source_topic(kafka, world)


def create_source_topic(kafka: AdminClient, world: World) -> str:
    """Create the topic that `application(world.namespace)` reads; return its name."""
    name = f"{world.namespace}-in"
    for future in kafka.create_topics([NewTopic(name, 2, 1)]).values():
        future.result()
    return name


@pytest.fixture
async def account(kube: KubeClient, world: World) -> AsyncIterator[Account]:
    """An account in the world's namespace that has no rights yet but to list nodes."""
    account = Account(kube, world.namespace)
    await account.create()
    yield account
    await account.delete()


@pytest.fixture
def settings(cluster: Cluster, world: World, tmp_path: Path) -> Settings:
    """Settings of an operator for the test's namespace only."""
    return Settings(
        bootstrap_servers=cluster.bootstrap_servers,
        checkpoint_volume={"hostPath": {"path": str(tmp_path)}},
        image="streamgraft",
        checkpoint_root=tmp_path,
        bundle_networks=("127.0.0.0/8",),
        namespaces=(world.namespace,),
    )


@pytest.fixture
async def rights(cluster: Cluster) -> AsyncIterator[KubeClient]:
    """A client with the operator's own rights."""
    async with KubeClient(load_config(cluster.home.kubeconfig("operator"))) as client:
        yield client


@pytest.fixture
async def operator(rights: KubeClient, settings: Settings) -> AsyncIterator[None]:
    """A running operator."""
    async with operating(rights, settings):
        yield


@pytest.fixture
async def player(kube: KubeClient, world: World) -> AsyncIterator[HandPlayedPe]:
    """PEs played by hand, on a node that only exists for this test."""
    node = f"played-{world.namespace}"
    await kube.create("/api/v1/nodes", {"metadata": {"name": node}})
    played = HandPlayedPe(kube, world.namespace, node)
    async with running(played.run()), running(_heartbeat(kube, node)):
        yield played
    await kube.delete(f"/api/v1/nodes/{node}")
    assert played.violations == []


async def _heartbeat(kube: KubeClient, node: str) -> None:
    """Keep the cluster from evicting pods of a node that never reports."""
    while True:
        now = to_rfc3339(time.time()).partition(".")[0] + "Z"
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now}
        await kube.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready]}})
        await asyncio.sleep(5)


def operating(
    client: KubeClient, settings: Settings
) -> AbstractAsyncContextManager[asyncio.Task[None]]:
    """Run an operator in the background that needs no lease; it breaks off at the end."""
    return running(assembly.run(client, settings, asyncio.Event()))


@asynccontextmanager
async def running(work: Coroutine[None, None, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` in the background; its failure is the test's."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
