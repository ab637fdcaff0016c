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


def get(cluster: Cluster, url: str) -> requests.Response | None:
    """Return an administrator's answer of a replica, None while there is none."""
    pki = cluster.home.pki
    certificate = (str(pki / "admin.crt"), str(pki / "admin.key"))
    try:
        return requests.get(url, cert=certificate, verify=str(pki / "ca.crt"), timeout=30)
    except requests.ConnectionError:
        return None


@contextmanager
def replica(cluster: Cluster, port: int, prometheus: str) -> Iterator[str]:
    """Run a second adapter beside the cluster's own; return its URL."""
    pki = cluster.home.pki
    command = (
        *(sys.executable, "-P", "-m", "streamgraft_metrics_adapter"),
        *("--kubeconfig", str(cluster.home.kubeconfig("adapter"))),
        *("--prometheus-url", prometheus),
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

    def history(url: str) -> dict[float, Any]:
        answer = get(cluster, url + HISTORY.format(region.namespace))
        items = answer.json().get("items", []) if answer is not None else []
        # The second replica knows what a channel can process from what the first one exports.
        return {item["time"]: item["signals"] for item in items if item["signals"]["demand"]}

    port = ports.choose(("replica",), {})["replica"]
    with replica(cluster, port, cluster.prometheus_url) as url:

        async def equal_twice() -> bool:
            own = await asyncio.to_thread(history, cluster.adapter_url)
            other = await asyncio.to_thread(history, url)
            same = [time for time in own.keys() & other.keys() if own[time] == other[time]]
            return len(same) >= 2

        await until(equal_twice, 240)


async def test_a_replica_serves_the_api_without_prometheus(
    region: Any, until: Any, cluster: Cluster
) -> None:
    """A mistyped address: discovery answers, so namespaces go; signals say why they have no value.

    The API server reaches pods that are ready only.
    """
    chosen = ports.choose(("replica", "nobody"), {})
    with replica(cluster, chosen["replica"], f"http://127.0.0.1:{chosen['nobody']}") as url:

        async def ready() -> bool:
            answer = await asyncio.to_thread(get, cluster, f"{url}/readyz")
            return answer is not None and answer.status_code == 200

        await until(ready, 60)
        path = f"{url}/apis/custom.metrics.k8s.io/v1beta2"
        found = await asyncio.to_thread(get, cluster, path)
        assert found is not None
        assert found.json()["kind"] == "APIResourceList"
        name = "parallelregions.streamgraft.io/flights-enrich/demand"
        path = f"{path}/namespaces/{region.namespace}/{name}"
        signal = await asyncio.to_thread(get, cluster, path)
        assert signal is not None
        assert signal.status_code == 503
        assert "PrometheusUnavailable" in signal.json()["message"]


async def test_prometheus_takes_the_alerting_rules(cluster: Cluster, until: Any) -> None:
    async def evaluated() -> bool:
        url = f"{cluster.prometheus_url}/api/v1/rules"
        answer = await asyncio.to_thread(requests.get, url, timeout=30)
        rules = [rule for group in answer.json()["data"]["groups"] for rule in group["rules"]]
        assert [rule["lastError"] for rule in rules if "lastError" in rule] == []
        return len(rules) > 10 and {rule["health"] for rule in rules} == {"ok"}

    await until(evaluated, 60)
