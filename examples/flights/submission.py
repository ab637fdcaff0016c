"""Submits the application and its autoscaler, as `streamgraft submit` and kubectl would."""

import base64
from typing import Any

import yaml

from examples.flights.settings import (
    AUTOSCALER,
    JOB,
    MAX_WIDTH,
    NAMESPACE,
    REGION,
    SCALE_DOWN_STABILIZATION_SECONDS,
    SCALE_UP_STABILIZATION_SECONDS,
)
from streamgraft_common import names
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import JOB as JOB_KIND
from streamgraft_common.resources import PARALLEL_REGION

MANAGER = "streamgraft-demo"


MAX_OFFSETS = "spark.streamgraft.maxOffsetsPerTrigger"
"""Setting of the PE runtime: records that one batch may take."""


async def submit(client: KubeClient, bundle: bytes, service_url: str, batch_flights: int) -> None:
    """Upload the bundle and create the Job; a batch takes `batch_flights` flights at most."""
    name = names.bundle_config_map(JOB)
    upload = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "binaryData": {names.BUNDLE_KEY: base64.b64encode(bundle).decode()},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"
    await client.apply(path, upload, MANAGER)
    spec = {
        "bundle": {"configMap": {"name": name}},
        "parameters": {"service-url": service_url},
        "processingElement": {"sparkConf": {MAX_OFFSETS: str(batch_flights)}},
    }
    job = JOB_KIND.manifest(JOB, NAMESPACE, spec)
    await client.apply(JOB_KIND.path(NAMESPACE, JOB), job, MANAGER)


async def autoscale(client: KubeClient) -> None:
    """Create the HPA of the region."""
    body = autoscaler(yaml.safe_load(AUTOSCALER.read_text()))
    place = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
    await client.apply(f"{place}/{body['metadata']['name']}", body, MANAGER)


def autoscaler(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest for the demo's region, quicker to react than a real cluster's."""
    region = names.region_name(JOB, REGION)
    target = {"apiVersion": names.API_VERSION, "kind": PARALLEL_REGION.kind, "name": region}
    spec = manifest["spec"]
    metrics = [
        {**metric, "object": {**metric["object"], "describedObject": target}}
        for metric in spec["metrics"]
    ]
    behavior = {
        direction: {**spec["behavior"][direction], "stabilizationWindowSeconds": seconds}
        for direction, seconds in (
            ("scaleUp", SCALE_UP_STABILIZATION_SECONDS),
            ("scaleDown", SCALE_DOWN_STABILIZATION_SECONDS),
        )
    }
    return {
        **manifest,
        "metadata": {"name": region, "namespace": NAMESPACE},
        "spec": {
            **spec,
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": MAX_WIDTH,
            "metrics": metrics,
            "behavior": behavior,
        },
    }
