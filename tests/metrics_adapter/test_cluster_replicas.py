"""Two replicas serve the same values; Prometheus takes the alerting rules."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from streamgraft_local import Cluster, ports

pytestmark = pytest.mark.integration

HISTORY = "/api/v1/namespaces/{}/regions/flights-enrich/history"


@contextmanager
def replica(cluster: Cluster, port: int) -> Iterator[str]:
    """Run a second adapter beside the cluster's own; return its URL."""
    pki = cluster.home.pki
    command = (
        *(sys.executable, "-P", "-m", "streamgraft_metrics_adapter"),
        *("--kubeconfig", str(cluster.home.kubeconfig("adapter"))),
        *("--prometheus-url", cluster.prometheus_url),
        *("--bind", "127.0.0.1", "--port", str(port)),
        *("--tls-cert", str(pki / "adapter-serving.crt")),
        *("--tls-key", str(pki / "adapter-serving.key")),
    )
    process = subprocess.Popen(command)
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def test_two_replicas_serve_the_same_values(
    region: Any, until: Any, cluster: Cluster
) -> None:
    """At the times that both remember; the lag grows, so at another time it would be another."""
    region.load(arriving=100, processed=50, busy=0.5)
    pki = cluster.home.pki

    def history(url: str) -> dict[float, Any]:
        try:
            answer = requests.get(
                url + HISTORY.format(region.namespace),
                cert=(str(pki / "admin.crt"), str(pki / "admin.key")),
                verify=str(pki / "ca.crt"),
                timeout=30,
            )
        except requests.ConnectionError:
            return {}
        items = answer.json().get("items", [])
        # The second replica knows what a channel can process from what the first one exports.
        return {item["time"]: item["signals"] for item in items if item["signals"]["demand"]}

    with replica(cluster, ports.choose(("replica",), {})["replica"]) as url:

        async def equal_twice() -> bool:
            own = await asyncio.to_thread(history, cluster.adapter_url)
            other = await asyncio.to_thread(history, url)
            same = [time for time in own.keys() & other.keys() if own[time] == other[time]]
            return len(same) >= 2

        await until(equal_twice, 240)


async def test_prometheus_takes_the_alerting_rules(cluster: Cluster, until: Any) -> None:
    async def evaluated() -> bool:
        url = f"{cluster.prometheus_url}/api/v1/rules"
        answer = await asyncio.to_thread(requests.get, url, timeout=30)
        rules = [rule for group in answer.json()["data"]["groups"] for rule in group["rules"]]
        assert [rule["lastError"] for rule in rules if "lastError" in rule] == []
        return len(rules) > 10 and {rule["health"] for rule in rules} == {"ok"}

    await until(evaluated, 60)
