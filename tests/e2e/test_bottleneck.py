"""A region that can't grow holds back those above it: what they sent faster would only wait."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.producers import idempotent

from streamgraft.testing.live import LiveJob
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

APPLICATION = Path(__file__).with_name("bottleneck_application.py")
RATE = 250
"""Records a second: the work of several channels above, far more than the region below takes."""
PATIENCE_SECONDS = 400
HELD_SECONDS = 60


@contextmanager
def load(servers: str) -> Iterator[None]:
    """Write records at the rate, with keys of many groups."""
    over = threading.Event()

    def keep_sending() -> None:
        producer, sent = idempotent(servers), 0
        while not over.wait(1 / RATE):
            key = f"key-{sent % 97}"
            producer.produce("bottleneck-in", json.dumps({"id": sent, "key": key}), key)
            producer.poll(0)
            sent += 1
        producer.flush(10)

    sending = threading.Thread(target=keep_sending)
    sending.start()
    try:
        yield
    finally:
        over.set()
        sending.join()


async def explained(job: LiveJob, cluster: Cluster) -> dict[str, Any]:
    """Return what `streamgraft explain` says of the region above; nothing while it can't."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("streamgraft")),
        *("--kubeconfig", str(cluster.kubeconfig), "-n", job.namespace),
        *("explain", "region", "bottleneck-above", "-o", "json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return json.loads(output) if process.returncode == 0 else {}


async def watched(job: LiveJob, cluster: Cluster) -> Object:
    """Wait until the region above is held, look on for a while, and return it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "region below takes no more than" not in str(await explained(job, cluster)):
            await asyncio.sleep(2)
    await asyncio.sleep(HELD_SECONDS)
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        return await client.get(PARALLEL_REGION.path(job.namespace, "bottleneck-above"))


def test_a_bottleneck_holds_back_the_region_above_it(cluster: Cluster) -> None:
    """Its own load alone would have the HPA widen it further, at once and at no price."""
    with LiveJob.of(cluster, APPLICATION) as job, load(job.bootstrap_servers):
        above = asyncio.run(watched(job, cluster))
        demand = asyncio.run(explained(job, cluster))["region"]["signals"]["demand"]
    inputs, width = demand["inputs"], above["spec"]["width"]
    arriving = inputs["stages"][inputs["stage"]]["load"]
    assert arriving["input_rate"] > width * arriving["capacity"]["true_rate"]
    assert inputs["needed"] <= width
