"""Paths of requests to the API server, and how many may be open."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from streamgraft_common.kinds import POD, SECRET
from streamgraft_common.kube import KubeClient, KubeConfig, NotFound
from streamgraft_common.resources import TransportSecurity

WATCHES = 80
Server = tuple[str, list[str]]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A server whose watches never end, and the paths that it was asked for."""
    asked: list[str] = []
    over = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path_qs)
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await over.wait()
            return response
        return web.json_response({})

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    over.set()
    await runner.cleanup()


@pytest.mark.parametrize(
    "name", ["../../other/secrets/kafka", "..", ".", "../../../pods?watch=true", "a/../b", "%2e%2e"]
)
async def test_a_name_leads_to_no_other_place(server: Server, name: str) -> None:
    """Names come from resources of all tenants."""
    url, asked = server
    async with KubeClient(KubeConfig(server=url)) as client:
        assert await client.find(SECRET.path("ours", name)) is None
        with pytest.raises(NotFound, match="check the names"):
            await client.delete(SECRET.path("ours", name))
    assert asked == []


async def test_watches_leave_connections_for_all_else(server: Server) -> None:
    """There are a dozen for each namespace that the operator is told to watch."""
    url, asked = server

    async def watched(client: KubeClient) -> None:
        async for _ in client.watch(POD.path("a"), "1"):
            pass

    async with KubeClient(KubeConfig(server=url), timeout_seconds=20) as client:
        watches = [asyncio.create_task(watched(client)) for _ in range(WATCHES)]
        async with asyncio.timeout(20):
            while len(asked) < WATCHES:
                await asyncio.sleep(0.01)
        await client.get(POD.path("a", "b"))
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


def test_names_of_secrets_are_names() -> None:
    """So that a Job with another one is refused at once."""
    with pytest.raises(ValueError, match="should match pattern"):
        TransportSecurity(type="TLS", kafka_secret="../../other/secrets/kafka")
