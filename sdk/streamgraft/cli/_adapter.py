"""Where the metrics adapter is, and by which certificate it is known."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from streamgraft.cli._cluster import Cluster
from streamgraft.cli._embedded import running_adapter
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common.kinds import API_SERVICE
from streamgraft_common.kube import ApiError, KubeClient, KubeConfig

NAME = "v1beta1.custom.metrics.k8s.io"
"""The APIService that says who serves the signals."""


@asynccontextmanager
async def adapter(
    target: Target, cluster: Cluster, url: str | None, token: str | None = None
) -> AsyncIterator[KubeClient]:
    """Connect to the adapter: at `url`, else the embedded environment's if that is the target.

    As who we are in the cluster, or as whom `token` stands for. Raises CommandError.
    """
    service = await _service(cluster.client)
    embedded = target.kubeconfig is None and target.context is None
    url = url or (running_adapter() if embedded else None)
    if url is None:
        raise CommandError(_where(service))
    config = cluster.client.config
    config = reached(config.of_bearer(token) if token else config, url.rstrip("/"), service)
    async with KubeClient(config, peer=f"the metrics adapter at {url}") as client:
        yield client


def reached(config: KubeConfig, url: str, service: dict[str, Any] | None) -> KubeConfig:
    """Return how to reach the adapter at a URL. Pure.

    A forwarded port has another name than the certificate, which may be of another authority than
    the API server's: both are as the API server itself knows them. Without them (`service` is the
    spec of an APIService, None if we may not read it) the adapter counts as a part of the cluster.
    """
    place = (service or {}).get("service")
    if not service or not place:
        return replace(config, server=url)
    bundle = service.get("caBundle")
    return replace(
        config,
        server=url,
        tls_server_name=f"{place['name']}.{place['namespace']}.svc",
        ca_data=base64.b64decode(bundle).decode() if bundle else None,
        insecure=bool(service.get("insecureSkipTLSVerify")),
        proxy=None,
    )


async def _service(client: KubeClient) -> dict[str, Any] | None:
    try:
        found = await client.find(API_SERVICE.path("", NAME))
    except ApiError:
        return None
    return found["spec"] if found else None


def _where(service: dict[str, Any] | None) -> str:
    """Return how to say where the adapter is."""
    place = (service or {}).get("service") or {}
    namespace = place.get("namespace", "streamgraft-system")
    name = place.get("name", "streamgraft-metrics-adapter")
    return (
        "say where the metrics adapter is: --adapter https://127.0.0.1:8443, after `kubectl"
        f" port-forward -n {namespace} service/{name} 8443:443`"
    )
