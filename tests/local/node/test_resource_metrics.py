"""metrics.k8s.io of the embedded environment, asked as `kubectl top` asks."""

import asyncio
import ssl
import sys
import time
from typing import Any

import aiohttp
import pytest

from streamgraft_common.kube import ApiError, KubeClient, NotFound
from streamgraft_common.quantities import parse
from streamgraft_local import Cluster
from streamgraft_local.components.streamgraft import NODE_NAME

pytestmark = pytest.mark.integration

BASE = "/apis/metrics.k8s.io/v1beta1"
BUSY = "while True: pass"
LARGE = "held = bytearray(b'x') * (200 << 20); __import__('time').sleep(1000)"


async def test_pods_and_nodes_are_measured(
    cluster: Cluster, kube: KubeClient, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name, script in (("busy", BUSY), ("large", LARGE)):
        container = {"name": "main", "image": "none", "command": [sys.executable, "-c", script]}
        spec = {"nodeName": NODE_NAME, "containers": [container]}
        await kube.create(pods, {"metadata": {"name": name, "labels": {"is": name}}, "spec": spec})
    measured = f"{BASE}/namespaces/{namespace}/pods"
    deadline = time.monotonic() + 60
    while not _as_expected(found := (await kube.get(measured))["items"]):  # they start first
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.5)

    selected = (await kube.get(measured, labelSelector="is in (large,other)"))["items"]
    assert [item["metadata"]["name"] for item in selected] == ["large"]
    everywhere = (await kube.get(f"{BASE}/pods", fieldSelector="metadata.name=busy"))["items"]
    assert [item["metadata"]["namespace"] for item in everywhere] == [namespace]
    assert (await kube.get(f"{measured}/busy"))["metadata"]["labels"] == {"is": "busy"}
    with pytest.raises(NotFound):
        await kube.get(f"{measured}/none")
    with pytest.raises(ApiError, match="unable to parse"):
        await kube.get(measured, labelSelector="a=(")

    (node,) = (await kube.get(f"{BASE}/nodes"))["items"]
    assert node["metadata"]["name"] == NODE_NAME
    assert parse(node["usage"]["memory"]) > parse(_usage(found, "large")["memory"])
    await _strangers_are_refused(cluster)


async def _strangers_are_refused(cluster: Cluster) -> None:
    """Users could read what the API server does not let them; not even certificates help."""
    pki = cluster.home.pki
    url = f"https://127.0.0.1:{cluster.state().ports['node-metrics']}{BASE}/pods"
    for identity in (None, "admin"):
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        if identity:
            context.load_cert_chain(pki / f"{identity}.crt", pki / f"{identity}.key")
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.ClientError):
                await http.get(url, ssl=context)


def _as_expected(items: list[dict[str, Any]]) -> bool:
    if len(items) < 2:
        return False
    busy, large = (_usage(items, name) for name in ("busy", "large"))
    return (
        parse(busy["cpu"]) > 10 * parse(large["cpu"])
        and 200 * 1024**2 < parse(large["memory"]) < 300 * 1024**2
        and parse(busy["memory"]) < 100 * 1024**2
    )


def _usage(items: list[dict[str, Any]], name: str) -> dict[str, str]:
    (item,) = (item for item in items if item["metadata"]["name"] == name)
    (container,) = item["containers"]
    usage: dict[str, str] = container["usage"]
    return usage
