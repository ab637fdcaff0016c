"""Signals and the HPA: real Prometheus, aggregator and controller; only the PE is hollow."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgraft_common.kube import ApiError, KubeClient
from streamgraft_common.quantities import parse
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

MANIFESTS = Path(__file__).parents[2] / "deploy" / "hpa"
SECONDS = 120.0
"""Enough for anything here on a busy machine; nothing waits this long otherwise."""


def autoscaler(manifest: str, namespace: str) -> dict[str, Any]:
    """Return a manifest of deploy/hpa for a region of width 4 at most, that reacts at once."""
    document: dict[str, Any] = yaml.safe_load((MANIFESTS / manifest).read_text())
    document["metadata"]["namespace"] = namespace
    document["spec"]["maxReplicas"] = 4
    for direction in document["spec"]["behavior"].values():
        direction["stabilizationWindowSeconds"] = 0
        for policy in direction["policies"]:
            policy["periodSeconds"] = 1
    return document


def path_of(namespace: str) -> str:
    """Return the path of a namespace's HPAs."""
    return f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"


async def active(kube: KubeClient, namespace: str) -> str:
    """Return the status of the HPA's condition ScalingActive."""
    found = await kube.get(f"{path_of(namespace)}/flights-enrich")
    conditions = found.get("status", {}).get("conditions", [])
    return str(next((c["status"] for c in conditions if c["type"] == "ScalingActive"), ""))


async def test_every_signal_in_both_versions(region: Any, until: Any) -> None:
    """A region that keeps up: no lag, busy for half of its time, 100/s at 200/s if busy."""
    await until(lambda: has_value(region, "demand"), SECONDS)
    await until(lambda: close(region, "demand", 1.0, 0.2), SECONDS)
    await until(lambda: close(region, "utilization", 0.5, 0.15), SECONDS)
    await until(lambda: close(region, "relative_lag_change_rate", 1.0, 0.05), SECONDS)
    await until(lambda: close(region, "relative_lag_change_rate_gated", -1.0, 0.05), SECONDS)
    assert await region.value("total_lag") == "0"
    item = one(await region.metric("total_lag", "v1beta1"))
    assert item["metricName"] == "total_lag"
    assert item["window"] == 60
    item = one(await region.metric("total_lag", "v1beta2"))
    assert item["metric"] == {"name": "total_lag", "selector": None}
    assert item["windowSeconds"] == 60
    assert item["describedObject"]["name"] == "flights-enrich"
    sampled = datetime.fromisoformat(item["timestamp"])
    assert (datetime.now(UTC) - sampled).total_seconds() < 30


async def test_what_has_no_value_is_an_error_with_a_reason(region: Any, until: Any) -> None:
    await until(lambda: is_known(region), SECONDS)
    assert await failure(region, "demand") == (503, "ServiceUnavailable", "NoData")
    await until(lambda: has_value(region, "total_lag"), SECONDS)
    await region.resizing("True")
    await until(lambda: without_value(region, "total_lag"), SECONDS)
    assert await failure(region, "total_lag") == (503, "ServiceUnavailable", "Resizing")
    await region.resizing("False")
    await until(lambda: has_value(region, "total_lag"), SECONDS)
    assert (await failure(region, "beauty"))[:2] == (404, "NotFound")
    assert (await failure(region, "demand", name="nobody"))[:2] == (404, "NotFound")


async def test_list_by_selector(region: Any, until: Any) -> None:
    await until(lambda: has_value(region, "total_lag"), SECONDS)
    everything = await region.metric("total_lag", name="*")
    assert [item["describedObject"]["name"] for item in everything["items"]] == ["flights-enrich"]


async def test_other_objects_and_external_metrics(region: Any, until: Any) -> None:
    """PEs, pods, jobs and the namespace: rules of the adapter's own configuration."""
    custom = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{region.namespace}"
    external = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{region.namespace}"
    region.load(arriving=100, processed=50, busy=0.5)

    async def items(path: str, **query: str) -> list[dict[str, Any]]:
        found = await region.tried(path, **query)
        return list(found["items"]) if found else []

    async def served() -> bool:
        paths = (
            "processingelements.streamgraft.io/0/utilization",
            "pods/flights-0-1/utilization",
            "jobs.streamgraft.io/flights/total_lag",
            "metrics/total_lag",
        )
        return all([len(await items(f"{custom}/{path}")) == 1 for path in paths])

    await until(served, SECONDS)
    label = "streamgraft.io/region"
    (pod,) = await items(f"{custom}/pods/*/utilization", labelSelector=f"{label}=enrich")
    assert pod["describedObject"]["name"] == "flights-0-1"
    assert await items(f"{custom}/pods/*/utilization", labelSelector=f"{label}=else") == []
    (value,) = await items(f"{external}/streamgraft_total_lag", labelSelector="region=enrich")
    assert value["metricLabels"]["streams_job"] == "flights"


@pytest.mark.parametrize("manifest", ["demand.yaml", "paper-policy.yaml", "cpu.yaml"])
async def test_manifests_are_valid(kube: KubeClient, namespace: str, manifest: str) -> None:
    """The API server takes the manifests as they are, defaults and all."""
    document = autoscaler(manifest, namespace)
    stored = await kube.create(path_of(namespace), document, dryRun="All", fieldValidation="Strict")
    wanted = document["spec"]["metrics"][0]
    kind = wanted["type"].lower()
    named = "metric" if kind == "object" else "name"
    assert stored["spec"]["metrics"][0][kind][named] == wanted[kind][named]


async def test_hpa_scales_holds_and_recovers(
    region: Any, until: Any, cluster: Cluster, kube: KubeClient
) -> None:
    """Up by demand; no change while Prometheus or the adapter is away; active again afterwards."""
    await until(lambda: has_value(region, "demand"), SECONDS)
    await kube.create(path_of(region.namespace), autoscaler("demand.yaml", region.namespace))
    region.load(arriving=500, processed=200, busy=1.0)

    async def width() -> int:
        return int((await kube.get(region.path))["spec"]["width"])

    async def grown() -> bool:
        return await width() == 4

    async def holding() -> bool:
        return await active(kube, region.namespace) == "False"

    async def working() -> bool:
        return await active(kube, region.namespace) == "True"

    await until(grown, SECONDS)
    await region.status(width=4)
    await until(working, SECONDS)
    await asyncio.to_thread(cluster.stop, "prometheus")
    try:
        region.load(arriving=0, processed=1000, busy=0.1)
        await until(holding, SECONDS)
        assert await width() == 4
        code, reason, cause = await failure(region, "demand")
        assert (code, reason) == (503, "ServiceUnavailable")
        assert cause in ("PrometheusUnavailable", "Stale")
    finally:
        await asyncio.to_thread(cluster.start, "prometheus")
    await until(working, SECONDS)
    await asyncio.to_thread(cluster.stop, "adapter")
    try:
        await until(holding, SECONDS)
    finally:
        await asyncio.to_thread(cluster.start, "adapter")
    await until(working, SECONDS)


@pytest.mark.long
async def test_the_papers_policies(region: Any, until: Any, kube: KubeClient) -> None:
    """Section 3.4: the HPA goes by CPU, as metrics.k8s.io has it. Section 4: by lag change, where
    utilization asks for less (Eq. 1)."""
    path = f"{path_of(region.namespace)}/flights-enrich"

    async def width() -> int:
        return int((await kube.get(region.path))["spec"]["width"])

    async def grown() -> bool:
        return await width() > 1

    async def narrow() -> bool:
        return await width() == 1

    async def followed(done: Any) -> list[dict[str, Any]]:
        """Wait for a width, have the region serve at it, and return what the HPA went by."""
        await until(done, SECONDS)
        await region.status(width=await width())
        found: list[dict[str, Any]] = (await kube.get(path))["status"]["currentMetrics"]
        return found

    # The pod requests 100m: half a core is 500 % of that, six times the target of 80 %.
    region.load(arriving=100, processed=200, busy=0.5, cores=0.5)
    await kube.create(path_of(region.namespace), autoscaler("cpu.yaml", region.namespace))
    (cpu,) = await followed(grown)
    assert cpu["resource"]["current"]["averageUtilization"] > 80
    region.load(arriving=100, processed=200, busy=0.5)
    (cpu,) = await followed(narrow)
    assert cpu["resource"]["current"]["averageUtilization"] < 80
    await kube.delete(path)

    # Half of what arrives is processed: Eq. 3 is 2, while utilization asks for one channel.
    region.load(arriving=400, processed=200, busy=0.5)
    await until(lambda: close(region, "relative_lag_change_rate_gated", 2.0, 0.3), SECONDS)
    await until(lambda: close(region, "utilization", 0.5, 0.1), SECONDS)
    await kube.create(path_of(region.namespace), autoscaler("paper-policy.yaml", region.namespace))
    change, utilization = await followed(grown)
    assert float(parse(change["object"]["current"]["value"])) > 1.5
    assert float(parse(utilization["object"]["current"]["value"])) < 0.8


@pytest.mark.long
async def test_the_papers_gate_and_maximum(region: Any, until: Any, kube: KubeClient) -> None:
    """Lag grows, and utilization alone decides while there is little of it (Eq. 4); then the larger
    of the two does (Eq. 1), be it lag change or utilization.

    One pod serves all along. So the width that a metric asks for is its value by its target,
    rounded up: 3 for the lag change of 2.6, and 1 or 2 for utilization.
    """
    seen: set[int] = set()

    async def decided(width: int, change: tuple[float, float], busy: tuple[float, float]) -> None:
        """Wait until the HPA asks for a width at values between these, and the region has it."""

        async def done() -> bool:
            found = (await kube.get(hpa)).get("status", {})
            asked = found.get("desiredReplicas")
            now = int((await kube.get(region.path))["spec"]["width"])
            seen.add(now)
            values = values_of(found)
            if len(values) < 2 or {asked, now} != {width}:
                return False
            inside = zip(values, (change, busy), strict=True)
            return all(least < value < most for value, (least, most) in inside)

        seen.clear()
        await until(done, SECONDS)

    async def threshold(records: float) -> None:
        await kube.patch(region.path, {"spec": {"autoscaling": {"lagThreshold": records}}})

    hpa = f"{path_of(region.namespace)}/flights-enrich"
    closed, opened, shrinking = (-2.9, -2.3), (2.3, 2.9), (0.4, 0.85)
    half, whole = (0.3, 0.7), (0.9, 1.1)
    await region.status(width=1, epoch=1)
    await threshold(1e9)
    region.load(arriving=520, processed=200, busy=1.0)
    await until(lambda: close(region, "relative_lag_change_rate", 2.6, 0.3), SECONDS)
    await until(lambda: close(region, "utilization", 1.0, 0.05), SECONDS)
    await kube.create(path_of(region.namespace), autoscaler("paper-policy.yaml", region.namespace))
    await decided(2, closed, whole)
    assert seen <= {1, 2}, "it followed the lag change"
    region.load(arriving=520, processed=200, busy=0.5)
    await decided(1, closed, half)
    assert seen <= {1, 2}, "it followed the lag change"

    await threshold(1000)
    await decided(3, opened, half)
    region.load(arriving=120, processed=200, busy=1.0)
    await decided(2, shrinking, whole)
    assert float(parse(await region.value("total_lag"))) > 1000


def values_of(status: dict[str, Any]) -> list[float]:
    """Return the values that an HPA went by, in the order of its metrics."""
    metrics = status.get("currentMetrics") or []
    found = [item.get("object", {}).get("current", {}).get("value") for item in metrics]
    return [float(parse(value)) for value in found if value is not None]


def one(listing: dict[str, Any]) -> dict[str, Any]:
    """Return the item of a list that must have exactly one."""
    (item,) = listing["items"]
    found: dict[str, Any] = item
    return found


async def is_known(region: Any) -> bool:
    """Tell whether the adapter knows the region."""
    return (await failure(region, "demand"))[0] == 503


async def has_value(region: Any, metric: str) -> bool:
    """Tell whether a metric has a value."""
    return await region.value(metric) is not None


async def without_value(region: Any, metric: str) -> bool:
    """Tell whether a metric has none."""
    return await region.value(metric) is None


async def close(region: Any, metric: str, wanted: float, tolerance: float) -> bool:
    """Tell whether a metric is what it should be."""
    text = await region.value(metric)
    if text is None:
        return False
    value = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    return abs(value - wanted) <= tolerance


async def failure(region: Any, metric: str, **query: str) -> tuple[int, str, str]:
    """Return code, reason, and the cause that the message names, of a read that must fail."""
    with pytest.raises(ApiError) as caught:
        await region.metric(metric, **query)
    parts = caught.value.message.split(": ")
    return caught.value.code, caught.value.reason, parts[1] if len(parts) > 1 else ""
