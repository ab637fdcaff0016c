"""The real broker is away: no signal has a value, and the real HPA holds the width.

Positions that can't be read stay as they were, in fresh samples: they would look like a region
without load, which an HPA narrows.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from streamgraft_common import names
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube import ApiError, KubeClient
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

APPLICATION = Path(__file__).with_name("outage_application.py")
PATIENCE_SECONDS = 300.0
REGIONS = {"demand": ("demand",), "lag": ("relative_lag_change_rate_gated", "utilization")}
"""Each with the metrics of its HPA."""


class Outage:
    """The job in its namespace."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._kube, self._namespace = kube, namespace

    async def widths(self) -> list[int]:
        """Return the wanted widths."""
        return [
            (await self._kube.get(PARALLEL_REGION.path(self._namespace, _resource(name))))["spec"][
                "width"
            ]
            for name in REGIONS
        ]

    async def reason(self, region: str, metric: str) -> str | None:
        """Return why a metric has no value, None if it has one."""
        place = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{self._namespace}"
        path = f"{place}/{PARALLEL_REGION.plural}.{names.GROUP}/{_resource(region)}/{metric}"
        try:
            await self._kube.get(path)
        except ApiError as error:
            if error.code != 503:
                raise
            return error.message.split(": ")[1]
        return None

    async def reasons(self) -> set[str | None]:
        """Return why the metrics of the HPAs have no values."""
        asked = [(name, metric) for name, metrics in REGIONS.items() for metric in metrics]
        return {await self.reason(*each) for each in asked}

    async def active(self) -> set[str]:
        """Return the status of the HPAs' conditions ScalingActive."""
        found: set[str] = set()
        for name in REGIONS:
            path = AUTOSCALER.path(self._namespace, _resource(name))
            conditions = (await self._kube.get(path)).get("status", {}).get("conditions", [])
            found |= {item["status"] for item in conditions if item["type"] == "ScalingActive"}
        return found

    async def until_reasons(self, wanted: set[str | None]) -> None:
        """Wait until the metrics have no values for these reasons."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.reasons() != wanted:
                await asyncio.sleep(0.5)


def _resource(region: str) -> str:
    return names.region_name("outage", region)


async def _command(cluster: Cluster, namespace: str, *arguments: str) -> None:
    program = str(Path(sys.executable).with_name("streamgraft"))
    options = ("--kubeconfig", str(cluster.kubeconfig), "-n", namespace)
    process = await asyncio.create_subprocess_exec(
        *(program, *options, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


@pytest.fixture
async def outage(cluster: Cluster, kube: KubeClient, namespace: str) -> AsyncIterator[Outage]:
    """The job, which runs."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topics = ["outage-in", "outage-out"]
    for created in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        created.result(30)
    wait = ("--wait", "--timeout", str(int(PATIENCE_SECONDS)))
    await _command(cluster, namespace, "submit", str(APPLICATION), *wait)
    yield Outage(kube, namespace)
    await _command(cluster, namespace, "cancel", "outage")
    for deleted in admin.delete_topics(topics).values():
        deleted.result(30)


@pytest.mark.parametrize("seconds", [90, 600], ids=["short", "ten minutes"])
async def test_an_outage_of_kafka_is_an_error_and_holds_the_width(
    outage: Outage, cluster: Cluster, seconds: int
) -> None:
    """The HPAs would narrow both regions two minutes after they began."""
    await outage.until_reasons({None})
    await asyncio.to_thread(cluster.stop, "kafka")
    try:
        await outage.until_reasons({"Stale"})
        # That long nothing may happen: there is no event to wait for.
        async with asyncio.timeout(seconds + PATIENCE_SECONDS):
            for _ in range(seconds):
                assert await outage.reasons() <= {"Stale", "NoData"}
                assert await outage.widths() == [2, 2]
                await asyncio.sleep(1)
        assert await outage.active() == {"False"}
    finally:
        await asyncio.to_thread(cluster.start, "kafka")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await outage.widths() != [1, 1]:
            await asyncio.sleep(1)
