"""Submits the application, as `streamgraft submit` would."""

import base64

from examples.flights.settings import JOB, NAMESPACE, WARM_POOL
from streamgraft_common import names
from streamgraft_common.kube import KubeClient
from streamgraft_common.own_conf import MAX_OFFSETS
from streamgraft_common.resources import JOB as JOB_KIND

MANAGER = "streamgraft-demo"


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
        "warmPool": WARM_POOL,
        "processingElement": {"sparkConf": {MAX_OFFSETS: str(batch_flights)}},
    }
    job = JOB_KIND.manifest(JOB, NAMESPACE, spec)
    await client.apply(JOB_KIND.path(NAMESPACE, JOB), job, MANAGER)
