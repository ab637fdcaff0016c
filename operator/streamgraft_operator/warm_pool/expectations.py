"""What the policies of regions expect: the signal `expected_demand`, as the HPA asks for others."""

import asyncio
import math
import time
from collections.abc import Iterable, Mapping

from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.store import Key
from streamgraft_common.quantities import parse

FRESH_SECONDS = 60.0
"""How long an answer, or that there is none, is not asked for again."""
EXPECTED_SECONDS = 1800.0
"""For how long an answer counts if there is no newer one: it is about so long a time."""
ANSWER_SECONDS = 2.0
"""A metrics API that takes longer counts as one without an answer."""
METRIC = "expected_demand"


class Expectations:
    """Asks the custom metrics API, and remembers for a minute what it said."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._asked_at: dict[Key, float] = {}
        self._known: dict[Key, dict[str, tuple[float, int]]] = {}
        """By job and region: when it was said, and the width."""

    async def widths(self, job: Key, regions: Iterable[str]) -> Mapping[str, int]:
        """Return the largest width that each region of a job is expected to want soon, by the names
        of the resources; 0: nobody knows.

        Without an answer, as there is none while a width changes, the last one counts for a while.
        """
        now = time.monotonic()
        known = self._known.setdefault(job, {})
        if now - self._asked_at.get(job, -math.inf) >= FRESH_SECONDS:
            asked = list(regions)
            answers = await asyncio.gather(*(self._ask((job[0], name)) for name in asked))
            self._asked_at[job] = now
            said = zip(asked, answers, strict=True)
            known |= {name: (now, width) for name, width in said if width is not None}
        return {name: width for name, (at, width) in known.items() if now - at < EXPECTED_SECONDS}

    def forget(self, job: Key) -> None:
        """Forget a job."""
        self._asked_at.pop(job, None)
        self._known.pop(job, None)

    async def _ask(self, key: Key) -> int | None:
        namespace, name = key
        place = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}"
        path = f"{place}/parallelregions.{names.GROUP}/{name}/{METRIC}"
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                (item,) = (await self._client.get(path))["items"]
        except (ApiError, Unreachable, TimeoutError):
            return None
        return round(parse(item["value"]))
