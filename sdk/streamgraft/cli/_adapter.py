"""Where the metrics adapter's own port is, and by which certificate it is known.

Only the console needs that: all else of the adapter is reached through the API server.
"""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from streamgraft.cli._cluster import Cluster
from streamgraft.cli._embedded import running_adapter
from streamgraft.cli._installation import (
    SIGNALS,
    Unseen,
    find_api_service,
    shown,
    system_namespace,
)
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object


@asynccontextmanager
async def adapter(
    target: Target, cluster: Cluster, url: str | None, token: str | None = None
) -> AsyncIterator[KubeClient]:
    """Connect to the adapter: at `url`, else the embedded environment's if that is the target.

    As who we are in the cluster, or as whom `token` stands for. Raises CommandError.
    """
    found = await find_api_service(cluster, SIGNALS)
    signals = shown(found)
    url = url or (running_adapter() if target.may_be_embedded else None)
    if url is None:
        raise CommandError(_where(signals))
    if found is Unseen.HIDDEN and url.startswith("https://"):
        raise CommandError(
            f"the certificate of {url} is known by the APIService v1beta2.{SIGNALS}, which you may"
            " not get: ask for a ClusterRoleBinding to the ClusterRole streamgraft-discovery,"
            " which the chart gives to everybody"
        )
    config = cluster.client.config
    config = reached(config.of_bearer(token) if token else config, url.rstrip("/"), signals)
    peer = f"the metrics adapter at {url}"
    async with KubeClient(config, peer=peer, environment_proxies=True) as client:
        yield client


def reached(config: KubeConfig, url: str, signals: Object | None) -> KubeConfig:
    """Return how to reach the adapter at a URL. Pure.

    A forwarded port has another name than the certificate, which may be of another authority than
    the API server's: both are as the API server itself knows them. Without them (`signals` is
    their APIService, None if there is none) the adapter counts as a part of the cluster.
    """
    spec = signals["spec"] if signals else {}
    place = spec.get("service")
    if not place:
        return replace(config, server=url)
    bundle = spec.get("caBundle")
    return replace(
        config,
        server=url,
        tls_server_name=f"{place['name']}.{place['namespace']}.svc",
        ca_data=base64.b64decode(bundle).decode() if bundle else None,
        insecure=bool(spec.get("insecureSkipTLSVerify")),
        proxy=None,
    )


def _where(signals: Object | None) -> str:
    """Return how to say where the adapter is."""
    place = (signals or {}).get("spec", {}).get("service") or {}
    name, system = place.get("name", names.ADAPTER), system_namespace(signals)
    return (
        "say where the metrics adapter is: --adapter https://127.0.0.1:8443, after `kubectl"
        f" port-forward -n {system} service/{name} 8443:443`, which takes a RoleBinding in"
        f" {system} to the Role streamgraft-console"
    )
