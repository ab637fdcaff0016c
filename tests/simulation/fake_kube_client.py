"""The client of the fake API server: latencies, errors, and watches that are late or break off."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_resources import FakeResource, Place, Selector, place_of, selector_of
from tests.simulation.fake_storage import Change

from streamgraft_common.kube import ApiError, KubeClient, KubeConfig, Unreachable
from streamgraft_common.kube.client import Object

CLIENT_TIMEOUT_SECONDS = 30.0


@dataclass
class FakeNetwork:
    """How bad the way to the API server is; all shares are probabilities per call or event.

    `latency`, `watch_delay`: seconds at most in most cases; `slow`: share of those that take up to
    half a minute. `lost`: share of requests that get no answer, with or without effect.
    """

    chance: random.Random
    latency: float = 0.0
    watch_delay: float = 0.0
    slow: float = 0.0
    lost: float = 0.0
    refused: float = 0.0
    """Share of requests that are answered by 500, 503 or 429, without effect."""
    dropped: float = 0.0
    """Share of deliveries after which a watch breaks off."""
    repeated: float = 0.0
    """Share of deliveries that a watch makes twice."""
    cut: bool = False
    """Nothing gets through at all."""

    def calm(self) -> None:
        """End all faults; latencies stay."""
        self.slow = self.lost = self.refused = self.dropped = self.repeated = 0.0
        self.cut = False

    async def travel(self, longest: float) -> None:
        """Take some time."""
        if longest <= 0:
            return
        if self.slow and self.chance.random() < self.slow:
            longest = CLIENT_TIMEOUT_SECONDS + 5
        loop = asyncio.get_running_loop()
        arrival = loop.create_future()
        loop.call_later(self.chance.random() * longest, _answer, arrival, 0)
        await arrival

    def happens(self, share: float) -> bool:
        """Return whether something of this probability happens now."""
        return share > 0 and self.chance.random() < share


class FakeKubeClient(KubeClient):
    """A KubeClient whose requests and watches go to a FakeApiServer over a FakeNetwork."""

    def __init__(self, server: FakeApiServer, network: FakeNetwork) -> None:
        super().__init__(KubeConfig(server="http://fake"))
        self._server = server
        self._network = network

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        """Answer as the API server would, or as a bad network does."""
        network, loop = self._network, asyncio.get_running_loop()
        began = loop.time()
        await network.travel(network.latency)
        lost = network.cut or network.happens(network.lost)
        if lost and (network.cut or network.happens(0.5)):
            raise Unreachable(f"{method} {path} got lost")
        if network.happens(network.refused):
            code = network.chance.choice((429, 500, 503))
            raise ApiError(code, "Fake", f"{method} {path} was refused")
        answer = self._server.request(method, path, body, query or {}, content_type)
        await network.travel(network.latency)
        late = loop.time() - began > CLIENT_TIMEOUT_SECONDS
        if lost or late or network.cut:
            raise Unreachable(f"the answer to {method} {path} got lost")
        if "PartialObjectMetadataList" in accept:
            # The real one says null where there is nothing.
            return {**answer, "items": [_metadata(item) for item in answer["items"]] or None}
        return answer

    async def watch(
        self,
        path: str,
        resource_version: str,
        selectors: Mapping[str, str] | None = None,
        *,
        metadata_only: bool = False,
        timeout_seconds: int = 300,
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield what a watch yields: late, some twice, until it breaks off."""
        place, version = place_of(path), int(resource_version)
        selector, network = selector_of(selectors or {}), self._network
        await network.travel(network.latency)
        ends = asyncio.get_running_loop().time() + timeout_seconds
        while True:
            changes = self._server.storage.changes_after(place.resource, version)
            if not changes and not network.cut:
                version = await self._news(place, selector, version, ends)
                if version < 0:
                    yield "BOOKMARK", _bookmark(place.resource, self._server.storage.version)
                    return
                await network.travel(network.watch_delay)
                continue
            breaks = network.cut or network.happens(network.dropped)
            if breaks:
                changes = changes[: network.chance.randrange(len(changes) + 1)]
            for kind, item in _deliveries(changes, place, selector, network):
                yield kind, _metadata(item) if metadata_only else item
            if breaks:
                raise Unreachable(f"the watch of {path} broke off")
            version = changes[-1].version

    async def _news(
        self, place: Place, selector: Selector | None, version: int, until: float
    ) -> int:
        """Wait for the next write that a watch may tell; -1 if none came by then.

        Return the version of the last one before. What a watch never tells does not wake it, unless
        that is when it breaks off.
        """
        storage, network, loop = self._server.storage, self._network, asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()

        def written(change: Change) -> None:
            nonlocal version
            if future.done():
                return
            mine = place.namespace in ("", change.key[0]) and change.shown(selector)
            if mine or network.cut or network.dropped:
                future.set_result(version)
                return
            version = change.version
            storage.at_next_change(place.resource, written)

        storage.at_next_change(place.resource, written)
        timer = loop.call_at(until, _answer, future, -1)
        try:
            return await future
        finally:
            timer.cancel()


def _answer(future: asyncio.Future[int], answer: int) -> None:
    if not future.done():
        future.set_result(answer)


def _deliveries(
    changes: list[Change], place: Place, selector: Selector | None, network: FakeNetwork
) -> list[tuple[str, Object]]:
    mine = [change for change in changes if place.namespace in ("", change.key[0])]
    events = [event for change in mine if (event := change.shown(selector))]
    if network.happens(network.repeated):
        again = network.chance.randrange(len(events) + 1)
        events += events[again:]
    return events


def _metadata(item: Object) -> Object:
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": item["metadata"],
    }


def _bookmark(resource: FakeResource, version: int) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"resourceVersion": str(version)},
    }
