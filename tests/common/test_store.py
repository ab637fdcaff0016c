"""Caches under refusals, breaks and restores: what they ask for, and what they keep."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from aiohttp import web

from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.kube.errors import ApiError, Forbidden, Gone, Unreachable
from streamgraft_common.kube.store import Store

Step = Exception | list[tuple[str, int, str]]
"""What a watch does: raise, or yield (type, version, name) and end."""


def thing(version: int, name: str = "a", **fields: Any) -> dict[str, Any]:
    """Return an object."""
    return {
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)},
        **fields,
    }


class FakeClient(KubeClient):
    """Answers lists and watches from a script, then hangs."""

    def __init__(self, lists: list[dict[str, Any] | Exception], watches: list[Step]) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self._lists, self._watches = lists, watches
        self.listed, self.watched = 0, list[str]()
        self.done = asyncio.Event()

    async def list(
        self, path: str, selectors: Mapping[str, str], *, metadata_only: bool = False
    ) -> dict[str, Any]:
        self.listed += 1
        answer = self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(
        self, path: str, resource_version: str, *selectors: Any, **options: Any
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        if not self._watches:
            self.done.set()
            await asyncio.Event().wait()
        self.watched.append(resource_version)
        step = self._watches.pop(0)
        if isinstance(step, Exception):
            raise step
        for kind, version, name in step:
            yield kind, thing(version, name)


def listing(version: int, *items: dict[str, Any]) -> dict[str, Any]:
    """Return a list object."""
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses that were made, which take no time here."""
    made: list[float] = []
    sleep = asyncio.sleep

    async def short(seconds: float) -> None:
        made.append(seconds)
        await sleep(0)

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", short)
        yield made


@contextmanager
def _ended(task: "asyncio.Task[None]") -> Iterator[None]:
    yield
    task.cancel()


async def run(client: FakeClient) -> Store:
    """Run a store until the script is over."""
    cache = Store(client, "/things")
    with _ended(asyncio.ensure_future(cache.run())):
        await asyncio.wait_for(client.done.wait(), 10)
    return cache


def names(cache: Store) -> set[str]:
    """Return the names of what a cache holds."""
    return {item["metadata"]["name"] for item in cache.items()}


async def test_watches_that_are_refused_or_break_need_no_list(pauses: list[float]) -> None:
    refusals: list[Step] = [ApiError(429, "TooManyRequests", "wait") for _ in range(6)]
    breaks: list[Step] = [Unreachable("broke off") for _ in range(6)]
    client = FakeClient([listing(5, thing(5))], [*refusals, *breaks])
    assert names(await run(client)) == {"a"}
    assert client.listed == 1
    assert client.watched == ["5"] * 12
    assert pauses[-1] > 20 * pauses[0]


async def test_pauses_grow_while_lists_succeed_and_watches_do_not(pauses: list[float]) -> None:
    client = FakeClient([listing(5, thing(5))], [Gone(410, "Expired", "old") for _ in range(8)])
    await run(client)
    assert client.listed == 9
    assert pauses[7] > 20 * pauses[0]


async def test_the_server_says_how_long_to_wait(pauses: list[float]) -> None:
    refusal = ApiError(429, "TooManyRequests", "wait")
    refusal.retry_after = 7.0
    await run(FakeClient([listing(5)], [refusal]))
    assert pauses == [7.0]


async def test_a_watch_goes_on_where_it_was(pauses: list[float]) -> None:
    watches: list[Step] = [[("ADDED", 6, "b")], Unreachable("broke off"), [("BOOKMARK", 9, "")]]
    client = FakeClient([listing(5, thing(5))], [*watches, [("DELETED", 10, "a")]])
    assert names(await run(client)) == {"b"}
    assert client.watched == ["5", "6", "6", "9"]


async def test_no_ghosts_after_etcd_was_restored(pauses: list[float]) -> None:
    before = listing(100, thing(90, "kept", was="new"), thing(95, "ghost"))
    after = listing(50, thing(40, "kept", was="old"), thing(45, "again"))
    client = FakeClient([before, after], [[("BOOKMARK", 50, "")], [("ADDED", 51, "later")]])
    cache = await run(client)
    assert names(cache) == {"kept", "again", "later"}
    kept = cache.get(("ns", "kept"))
    assert kept
    assert kept["was"] == "old"


async def test_lists_that_are_refused_are_answers(pauses: list[float]) -> None:
    """Whoever waits for the first list learns that there may be none."""
    client = FakeClient([Forbidden(403, "Forbidden", "no role")], [])
    cache = Store(client, "/things")
    with _ended(asyncio.ensure_future(cache.run())):
        await asyncio.wait_for(cache.answered.wait(), 10)
        assert not cache.synced.is_set()
    unreachable = FakeClient([Unreachable("no route"), listing(5, thing(5))], [])
    assert (await run(unreachable)).answered.is_set()


async def test_no_more_is_kept_than_wanted(pauses: list[float]) -> None:
    """Neither of what a list, nor of what a watch, nor of what a write shows."""
    client = FakeClient([listing(5, thing(5, large="x"))], [[("ADDED", 6, "b")]])
    cache = Store(client, "/things", trim=lambda item: {"metadata": item["metadata"]})
    with _ended(asyncio.ensure_future(cache.run())):
        await asyncio.wait_for(client.done.wait(), 10)
    cache.observe(thing(7, "c", large="x"))
    assert names(cache) == {"a", "b", "c"}
    assert all(item.keys() == {"metadata"} for item in cache.items())


@asynccontextmanager
async def _served(pages: dict[str, dict[str, Any]]) -> AsyncIterator[tuple[KubeClient, list[str]]]:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.query["limit"])
        return web.json_response(pages[request.query.get("continue", "")])

    served = web.Application()
    served.router.add_get("/things", answer)
    runner = web.AppRunner(served)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        config = KubeConfig(server=f"http://127.0.0.1:{runner.addresses[0][1]}")
        async with KubeClient(config) as client:
            yield client, asked
    finally:
        await runner.cleanup()


async def test_lists_are_read_page_by_page() -> None:
    first = {"metadata": {"resourceVersion": "5", "continue": "x"}, "items": [thing(1, "a")]}
    last = {"metadata": {"resourceVersion": "5"}, "items": [thing(2, "b")]}
    async with _served({"": first, "x": last}) as (client, asked):
        found = await client.list("/things", {})
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b"]
    assert asked == ["1000", "1000"]
