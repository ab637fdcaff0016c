"""Watches the run: every second, from the API server, Prometheus, Kafka and the replayer."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from examples.flights.explanation import channel_rate, why
from examples.flights.observation import (
    Decision,
    Observations,
    Pod,
    Sample,
    channels,
    hpa_message,
    hpa_metric,
    neighbours,
)
from examples.flights.prometheus import UTILIZATION, Prometheus
from examples.flights.results import Results
from examples.flights.settings import JOB, NAMESPACE, REGION, Plan
from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.resources import (
    PARALLEL_REGION,
    ParallelRegionSpec,
    ParallelRegionStatus,
)

SAMPLE_SECONDS = 1.0
FIRST_WIDTH = 1
_REGION = f"/api/v1/namespaces/{NAMESPACE}/regions/{names.region_name(JOB, REGION)}"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
_AUTOSCALERS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
_TROUBLE = (ApiError, Unreachable, aiohttp.ClientError, TimeoutError, ValueError)
_NEW_SIZE = re.compile(r"New size: (\d+)")


class Watcher:
    """Collects Observations; `sent`, `replayed` and the clock follow the replayer."""

    def __init__(
        self,
        plan: Plan,
        client: KubeClient,
        adapter: KubeClient,
        prometheus: Prometheus,
        results: Results,
    ) -> None:
        self.seen = Observations()
        self.sent = 0
        self.replayed = False
        self._clock = plan.settings.clock
        self._client = client
        self._adapter = adapter
        self._why = ""
        self._channel_rate: float | None = None
        self._prometheus = prometheus
        self._results = results
        self._started = asyncio.Event()
        self._start = 0.0
        self._rescales: dict[str, int] = {}

    async def begin(self) -> None:
        """Note the pods that are there."""
        pods = await self._pods()
        self.seen.neighbours_before = neighbours(pods)
        self.seen.prepared = {pod.uid for pod in pods}
        self.seen.starts = [it.start_seconds for it in pods if it.start_seconds is not None]

    async def end(self) -> None:
        """Note the neighbours' pods again."""
        self.seen.neighbours_after = neighbours(await self._pods())

    @property
    def seconds(self) -> float:
        """Seconds since the start of the replay."""
        return time.monotonic() - self._start

    async def follow(self, output: asyncio.StreamReader) -> None:
        """Read the replayer's progress until it ends."""
        async for line in output:
            progress = json.loads(line)
            self.sent = int(progress["sent"])
            self._start = time.monotonic() - float(progress["elapsed_seconds"])
            self._started.set()
        self.replayed = True

    async def watch(self, done: Callable[[], bool], show: Callable[[Observations], None]) -> None:
        """Take a sample a second, from the first flight on, until `done`."""
        await self._started.wait()
        while not done():
            started = time.monotonic()
            try:
                await self._sample()
            except _TROUBLE as error:
                self.seen.fail(f"{type(error).__name__}: {error}")
            show(self.seen)
            await asyncio.sleep(max(0.0, started + SAMPLE_SECONDS - time.monotonic()))

    async def region(self) -> tuple[ParallelRegionSpec, ParallelRegionStatus]:
        """Return the region as it is now."""
        path = PARALLEL_REGION.path(NAMESPACE, names.region_name(JOB, REGION))
        found = await self._client.get(path)
        spec = ParallelRegionSpec.model_validate(found["spec"])
        return spec, ParallelRegionStatus.model_validate(found.get("status") or {})

    async def _sample(self) -> None:
        (spec, status), autoscaler, utilization, _, _, _ = await asyncio.gather(
            self.region(),
            self._client.get(f"{_AUTOSCALERS}/{names.region_name(JOB, REGION)}"),
            self._prometheus.number(UTILIZATION),
            self._read_decisions(),
            self._read_why(),
            asyncio.to_thread(self._results.poll),
        )
        if status.width > FIRST_WIDTH and not self.seen.first_wave:
            self.seen.first_wave = channels(await self._pods())
        seconds = self.seconds
        self.seen.samples.append(
            Sample(
                seconds=round(seconds, 2),
                time_of_day="" if self.replayed else self._clock.time_of_day(seconds),
                sent=self.sent,
                processed=self._results.flights,
                width_wanted=spec.width,
                width_serving=status.width,
                demand=hpa_metric(autoscaler),
                utilization=utilization,
                channel_rate=self._channel_rate,
                condition=hpa_message(autoscaler),
            )
        )

    async def _read_why(self) -> None:
        region = await self._adapter.get(_REGION)
        self._channel_rate = channel_rate(region)
        if (reason := why(region)) is not None:
            self._why = reason

    async def _read_decisions(self) -> None:
        chosen = "involvedObject.kind=HorizontalPodAutoscaler,reason=SuccessfulRescale"
        events = await self._client.get(_EVENTS, fieldSelector=chosen)
        for event in events["items"]:
            self._note(event)

    def _note(self, event: dict[str, Any]) -> None:
        # Kubernetes counts repeated events in one object.
        name, count = event["metadata"]["name"], int(event.get("count") or 1)
        size = _NEW_SIZE.search(event["message"])
        if count > self._rescales.get(name, 0) and size:
            self._rescales[name] = count
            decision = Decision(round(self.seconds, 2), int(size[1]), event["message"], self._why)
            self.seen.decisions.append(decision)

    async def _pods(self) -> list[Pod]:
        found = await self._client.get(_PODS, labelSelector=f"{names.LABEL_JOB}={JOB}")
        return [Pod.of(item) for item in found["items"]]
