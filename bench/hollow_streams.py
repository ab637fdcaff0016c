"""Exports and imports of jobs that are not there: the broker connects them as it does all others.

Hollow: their PEs have no pods, nothing flows. Export `n` is of group `n % GROUPS`; an import wants
all of a group above a level.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import EXPORT, IMPORT, PROCESSING_ELEMENT

NAMESPACE = "hollow"
GROUPS = 50
LEVELS = 4
_WRITERS = 8
_SCHEMA = '{"type": "struct", "fields": [{"name": "id", "type": "long"}]}'


def export_spec(number: int, level: int) -> Object:
    """Return the spec of an Export."""
    properties = {"group": number % GROUPS, "level": level, "tags": ["bench"]}
    spec = {"job": f"out-{number}", "operator": "out", "stream": "s", "properties": properties}
    return {**spec, "topic": f"topic-{number}", "schema": _SCHEMA}


def subscription(number: int, level: int) -> str:
    """Return the subscription of an Import."""
    return f'group == {number % GROUPS} && level >= {level} && "bench" in tags'


class HollowStreams:
    """So many exports and as many imports, each in a PE."""

    def __init__(self, client: KubeClient, count: int, chance: random.Random) -> None:
        self.told: list[float] = []
        """Seconds from a change of an export to each PE that it concerns."""
        self._client = client
        self._count = count
        self._chance = chance
        self._levels = [number % LEVELS for number in range(count)]
        self._changed_at: dict[str, float] = {}
        self._pes = Store(client, PROCESSING_ELEMENT.path(NAMESPACE))
        self._pes.listen(self._seen)

    async def create(self) -> None:
        """Create all."""
        await self._client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await self._all(self._create)

    async def connected(self) -> int:
        """Return how many connections there are."""
        items = (await self._client.list(EXPORT.path(NAMESPACE), {}))["items"]
        return sum(len((item.get("status") or {}).get("imports", ())) for item in items)

    async def run(self, per_second: float) -> None:
        """Change the level of an export so many times a second, until cancelled."""
        watching = asyncio.create_task(self._pes.run())
        try:
            await self._pes.synced.wait()
            while True:
                await asyncio.sleep(1 / per_second)
                await self._change(self._chance.randrange(self._count))
        finally:
            watching.cancel()

    async def _change(self, number: int) -> None:
        before = self._levels[number]
        self._levels[number] = LEVELS - 1 - before  # so that some import hears of it
        self._changed_at[f"topic-{number}"] = time.monotonic()
        patch = {"spec": {"properties": {"level": self._levels[number]}}}
        await self._client.patch(EXPORT.path(NAMESPACE, f"out-{number}-out"), patch)

    async def _create(self, number: int) -> None:
        spec = export_spec(number, self._levels[number])
        await self._put(EXPORT, f"out-{number}-out", f"out-{number}", spec)
        job = f"in-{number}"
        element = {"job": job, "peId": 0, "stageName": "in", "importOperators": ["in"]}
        await self._put(PROCESSING_ELEMENT, f"{job}-0", job, element)
        wanted: dict[str, Any] = {"job": job, "operator": "in", "schema": _SCHEMA}
        wanted["subscription"] = subscription(number, number // GROUPS % LEVELS)
        await self._put(IMPORT, f"{job}-in", job, wanted)

    async def _put(self, kind: Any, name: str, job: str, spec: Object) -> None:
        manifest = kind.manifest(name, NAMESPACE, spec, labels={names.LABEL_JOB: job})
        await self._client.create(kind.path(NAMESPACE), manifest)

    async def _all(self, work: Callable[[int], Awaitable[None]]) -> None:
        numbers = iter(range(self._count))

        async def some() -> None:
            for number in numbers:
                await work(number)

        await asyncio.gather(*(some() for _ in range(_WRITERS)))

    def _seen(self, _: Key, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            return
        changed = _topics(old) ^ _topics(new)
        now = time.monotonic()
        self.told += [now - self._changed_at[name] for name in changed & self._changed_at.keys()]


def _topics(element: Object) -> set[str]:
    return {topic for item in element["spec"].get("imports", ()) for topic in item["topics"]}
