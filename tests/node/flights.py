"""The demo's application in real pods: a day of flights, and the real HPA that follows it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from tests.node import image, place
from tests.node.job import Job
from tests.node.node import Node
from tests.node.release import BROKERS
from tests.node.waiting import until

from bench.traffic import create_topic
from examples.flights import batch
from examples.flights.children import child, replay_command, service, succeed
from examples.flights.comparison import differences
from examples.flights.ending import STALLED_SECONDS
from examples.flights.results import Results
from examples.flights.settings import (
    APPLICATION,
    JOB,
    REGION,
    RESULT_TOPIC,
    SOURCE_TOPIC,
    WARM_POOL,
    Plan,
    Settings,
)
from streamgraft_common.kube import KubeClient

TOPICS = (SOURCE_TOPIC, RESULT_TOPIC)
_SETTINGS = Settings(days=30, cycle_seconds=240.0)
"""One accelerated day, of as many flights a second as the demo's two."""
_LOOK_SECONDS = 0.5


async def play(
    node: Node, client: KubeClient, work: Path, say: Callable[[str], None]
) -> dict[str, float]:
    """Run the job for a day; return figures. Raises AssertionError if its result is not exact."""
    plan = await asyncio.to_thread(Plan.of, _SETTINGS)
    job = Job(node, client, APPLICATION, JOB, REGION)
    create_topic(BROKERS, SOURCE_TOPIC, 1)
    async with AsyncExitStack() as stack:
        serving = service(plan.rate, work / "service.log", host=place.ADDRESS)
        url = await stack.enter_async_context(serving)
        await job.submit("--image", image.FLIGHTS, "--param", f"service-url={url}")
        await job.fill_pool(WARM_POOL)
        results = stack.enter_context(Results(BROKERS))
        began = time.monotonic()
        widest = await _replayed(job, results, len(plan.flights), work / "replay.log")
        say(f"{len(plan.flights)} flights: {time.monotonic() - began:.1f} s, up to width {widest}")
        found = differences(results.result, await asyncio.to_thread(batch.statistics, plan.flights))
        assert found == [], f"{len(found)} values differ from the batch's, as {found[0]}"
        assert widest > 1, "the HPA never widened the region"

        async def narrow() -> bool:
            return await job.width() == 1

        await until("the HPA narrows the flights' region", narrow)
    await job.cancel()
    return {"flights": len(plan.flights), "flights_widest": widest}


async def _replayed(job: Job, results: Results, flights: int, log: Path) -> int:
    """Replay the day, wait until all flights are in the result; return the largest width."""
    command = replay_command(_SETTINGS.clock, BROKERS)
    widest, came, last = 0, 0, time.monotonic()
    async with child(command, log) as process:
        assert process.stdout is not None
        reading = asyncio.create_task(process.stdout.read())
        while came < flights:
            await asyncio.sleep(_LOOK_SECONDS)
            widest = max(widest, await job.width())
            await asyncio.to_thread(results.poll)
            if results.flights > came or not reading.done():
                came, last = results.flights, time.monotonic()
            stalled = time.monotonic() > last + STALLED_SECONDS
            assert not stalled, f"only {came} of {flights} flights came"
        await reading
        await succeed(process, "the replayer", log)
    return widest
