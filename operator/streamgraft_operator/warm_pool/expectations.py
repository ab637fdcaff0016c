"""What the policies of regions expect: the signal `expected_demand`, as the HPA asks for others."""

import asyncio
import time
from collections.abc import Iterable, Mapping

from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.store import Key
from streamgraft_common.quantities import parse

FRESH_SECONDS = 60.0
"""How long an answer, or that there is none, is not asked for again."""
ANSWER_SECONDS = 2.0
"""A metrics API that takes longer counts as one without an answer."""
METRIC = "expected_demand"


class Expectations:
    """Asks the custom metrics API, and remembers for a minute what it said."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known: dict[Key, tuple[float, dict[str, int]]] = {}

    async def widths(self, job: Key, regions: Iterable[str]) -> Mapping[str, int]:
        """Return the largest width that each region of a job is expected to want soon, by the names
        of the resources; 0: nobody knows."""
        now = time.monotonic()
        asked_at, known = self._known.get(job, (now, {}))
        if now - asked_at >= FRESH_SECONDS or job not in self._known:
            asked = list(regions)
            answers = await asyncio.gather(*(self._ask((job[0], name)) for name in asked))
            known = dict(zip(asked, answers, strict=True))
            self._known[job] = (now, known)
        return known

    def forget(self, job: Key) -> None:
        """Forget a job."""
        self._known.pop(job, None)

    async def _ask(self, key: Key) -> int:
        namespace, name = key
        place = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}"
        path = f"{place}/parallelregions.{names.GROUP}/{name}/{METRIC}"
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                (item,) = (await self._client.get(path))["items"]
        except (ApiError, Unreachable, TimeoutError):
            return 0
        return round(parse(item["value"]))
