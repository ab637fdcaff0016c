"""How long nobody leads when the leading replica of the operator leaves, as in a rollout."""

import asyncio
import time
from dataclasses import dataclass

import aiohttp
import psutil

from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import LEASE, SERVICE
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_local import Cluster, ports
from streamgraft_operator.kit.leadership.lease import holder

_LEADERSHIP = LEASE.path(SYSTEM_NAMESPACE, "streamgraft-operator")
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class HandOver:
    """Seconds from the SIGTERM to the leading replica."""

    leading_s: float
    """Until another one holds the lease."""
    acting_s: float
    """Until that one has made what somebody deleted when it had just taken the lease."""


async def measure(cluster: Cluster, client: KubeClient, namespace: str, service: str) -> HandOver:
    """Let a second replica take over from the first, which is started again in the end.

    `service` is the name of a PE's Service.
    """
    path = SERVICE.path(namespace, service)
    first = await client.get(_LEADERSHIP)
    second = await _replica(cluster)
    try:
        begin = time.perf_counter()
        leaving = asyncio.ensure_future(asyncio.to_thread(cluster.stop, "operator"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while holder(await client.get(_LEADERSHIP)) in ("", holder(first)):
                await asyncio.sleep(POLL_SECONDS)
            leading = time.perf_counter() - begin
            await client.delete(path)
            while not await _exists(client, path):
                await asyncio.sleep(POLL_SECONDS)
            acting = time.perf_counter() - begin
        await leaving
    finally:
        second.terminate()
        await second.wait()
    await asyncio.to_thread(cluster.start, "operator")
    return HandOver(leading, acting)


async def _replica(cluster: Cluster) -> asyncio.subprocess.Process:
    """Start a second replica like the first; return when it waits for the lease."""
    pid = next(item.pid for item in cluster.status() if item.name == "operator")
    (port,) = ports.choose(["replica"], {}).values()
    mine = cluster.operator_url.rpartition(":")[2]
    command = [str(port) if part == mine else part for part in psutil.Process(pid).cmdline()]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
        while not await _serves(session, f"http://127.0.0.1:{port}/metrics"):
            await asyncio.sleep(0.1)
    await asyncio.sleep(1)  # it lists and watches the lease
    return process


async def _serves(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.ok
    except aiohttp.ClientError:
        return False


async def _exists(client: KubeClient, path: str) -> bool:
    try:
        await client.get(path)
    except NotFound:
        return False
    return True
