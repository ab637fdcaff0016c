"""Placement, obeyed by the real scheduler: nodes without a kubelet, on which pods stay pending."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from tests.operator.integration.conftest import running
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.kinds import NODE, POD
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import HOST_POOL
from streamgraft_common.timestamps import to_rfc3339

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator", "source_topic")]

ROOM = {"cpu": "64", "memory": "64Gi", "pods": "100"}


class Machines:
    """Nodes of one test; `name` makes the names, so that tests don't meet."""

    def __init__(self, client: KubeClient, world: World) -> None:
        self._client = client
        self._world = world
        self._rooms: dict[str, dict[str, str]] = {}

    def name(self, short: str) -> str:
        """Return the full name of a node."""
        return f"{self._world.namespace}-{short}"

    async def add(
        self, short: str, labels: Mapping[str, str] = {}, room: Mapping[str, str] = {}
    ) -> None:
        """Register a node that has room, or more of it, and is ready."""
        name = self.name(short)
        known = {"kubernetes.io/hostname": name, "test": self._world.namespace, **labels}
        await self._client.create(NODE.path(), {"metadata": {"name": name, "labels": known}})
        self._rooms[name] = {**ROOM, **room}
        await self._report(name)

    async def beat(self) -> None:
        """Keep the nodes ready."""
        while True:
            await asyncio.gather(*(self._report(name) for name in self._rooms))
            await asyncio.sleep(5)

    async def remove(self) -> None:
        """Remove all nodes."""
        for name in self._rooms:
            await self._client.delete(NODE.path("", name))

    async def _report(self, name: str) -> None:
        now = to_rfc3339(time.time()).partition(".")[0] + "Z"
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "reason": "Test"}
        status = {
            "capacity": self._rooms[name],
            "allocatable": self._rooms[name],
            "conditions": [ready],
        }
        await self._client.patch(f"{NODE.path('', name)}/status", {"status": status})


@pytest.fixture
async def machines(kube: KubeClient, world: World) -> AsyncIterator[Machines]:
    """Three nodes a, b (tagged gpu) and c."""
    machines = Machines(kube, world)
    for short, labels in (("a", {}), ("b", {"tag.streamgraft.io/gpu": ""}), ("c", {})):
        await machines.add(short, labels)
    async with running(machines.beat()):
        yield machines
    await machines.remove()


def branches(topics: str, placements: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an ADL: one source, and for each name a function and a sink that share a PE."""
    adl = application(topics)
    read, work, write = adl["operators"]
    schema = adl["streams"][0]["schema"]
    operators, streams = [read], adl["streams"][:1]
    for name, placement in placements.items():
        function = {**work, "name": name, "outputs": [f"{name}-rows"], "placement": placement}
        function.pop("region")
        operators += [function, {**write, "name": f"{name}-out", "inputs": [f"{name}-rows"]}]
        streams.append({"name": f"{name}-rows", "producer": name, "schema": schema})
    return {**adl, "operators": operators, "streams": streams, "regions": []}


async def submit(world: World, adl: dict[str, Any], **settings: Any) -> None:
    """Submit a job whose pods are for the test's nodes only."""
    await world.upload(bundle(adl))
    template = {"podTemplate": {"spec": {"nodeSelector": {"test": world.namespace}}}}
    await world.submit(fusion={"type": "legacy"}, processingElement=template | settings)


async def node_of(world: World, pod: str) -> str:
    """Wait until a pod is bound; return its node's short name."""
    item = await world.eventually(POD, pod, lambda item: item and item["spec"].get("nodeName"))
    node: str = item["spec"]["nodeName"]
    return node.rpartition("-")[2]


def nodes_in(pool: Object | None) -> list[str]:
    """Return the short names of a pool's nodes."""
    nodes = ((pool or {}).get("status") or {}).get("nodes", [])
    return [node.rpartition("-")[2] for node in nodes]


async def test_hosts_pools_and_tokens(world: World, machines: Machines, kube: KubeClient) -> None:
    """PE 0 reads; the others follow in the order of the branches."""
    placements: dict[str, dict[str, Any]] = {
        "fixed": {"host": machines.name("a")},
        "pooled": {"hostPool": "gpu"},
        "near": {"colocate": ["t"]},
        "nearer": {"colocate": ["t"]},
        "far": {"exlocate": ["t"]},
        "farther": {"exlocate": ["t"]},
        "lost": {"host": "nowhere"},
    }
    await submit(world, branches(world.namespace, placements))
    assert await node_of(world, "job-1-1") == "a"
    assert await node_of(world, "job-3-1") == await node_of(world, "job-4-1")
    assert await node_of(world, "job-5-1") != await node_of(world, "job-6-1")

    lost = await world.pe("job-7", lambda item: "node" in (item["status"] or {}).get("message", ""))
    assert "NodeAffinity" in lost["status"]["message"]
    assert await world.get(POD, "job-2-1") is None
    await world.create_pool("gpu", tags=["gpu"])
    assert await node_of(world, "job-2-1") == "b"
    await world.eventually(HOST_POOL, "gpu", lambda item: nodes_in(item) == ["b"])
    tag = {"metadata": {"labels": {"tag.streamgraft.io/gpu": ""}}}
    await kube.patch(NODE.path("", machines.name("c")), tag)
    await world.eventually(HOST_POOL, "gpu", lambda item: nodes_in(item) == ["b", "c"])


async def test_isolation_exclusive_pools_and_sizes(world: World, machines: Machines) -> None:
    """PE 0, which reads, is kept back by its pool until the two that want to be alone are bound."""
    await world.create_pool("own", nodeSelector={"test": world.namespace}, size=1, exclusive=True)
    pool = await world.eventually(HOST_POOL, "own", lambda item: len(nodes_in(item)) == 1)
    placements: dict[str, dict[str, Any]] = {
        "pooled": {"hostPool": "own"},
        "alone": {"host": machines.name("c"), "isolate": True},
    }
    adl = branches(world.namespace, placements)
    adl["operators"][0] = {**adl["operators"][0], "placement": {"hostPool": "later"}}
    await submit(world, adl)
    assert [await node_of(world, "job-1-1")] == nodes_in(pool) == ["a"]
    assert await node_of(world, "job-2-1") == "c"
    assert await world.get(POD, "job-0-1") is None
    await world.create_pool("later", nodeSelector={"test": world.namespace})
    assert await node_of(world, "job-0-1") == "b"


async def test_channels_are_spread(world: World, machines: Machines) -> None:
    """One node is so large that the scheduler would put all of them there."""
    await machines.add("d", room={"cpu": "6400", "memory": "6400Gi"})
    adl = application(world.namespace)
    adl["regions"][0]["width"] = 4
    await submit(world, adl, resources={"requests": {"cpu": "8", "memory": "8Gi"}})
    found = {await node_of(world, f"job-{number}-1") for number in (2, 3, 4, 5)}
    assert found == {"a", "b", "c", "d"}
