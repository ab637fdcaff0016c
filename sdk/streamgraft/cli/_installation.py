"""Where the operator is installed, and with which settings, as far as we may see that."""

from streamgraft.cli._cluster import Cluster
from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import API_SERVICE, DEPLOYMENT
from streamgraft_common.kube import ApiError
from streamgraft_common.kube.client import Object

SIGNALS = "custom.metrics.k8s.io"


async def api_service(cluster: Cluster, group: str) -> Object | None:
    """Return the APIService of the newest version of a group of metrics."""
    paths = (API_SERVICE.path("", f"{version}.{group}") for version in ("v1beta2", "v1beta1"))
    for path in paths:
        if found := await tried(cluster, path):
            return found
    return None


async def operator(cluster: Cluster, system: str) -> Object | None:
    """Return the operator's Deployment in a namespace."""
    return await tried(cluster, DEPLOYMENT.path(system, "streamgraft-operator"))


async def default_image(cluster: Cluster) -> str | None:
    """Return the image that the operator gives pods of jobs that name none; None: not known."""
    system = system_namespace(await api_service(cluster, SIGNALS))
    return settings_of(await operator(cluster, system)).get("image")


async def tried(cluster: Cluster, path: str, **query: str) -> Object | None:
    """Return an object, or a list object; None if it is not there, or is not shown to us."""
    try:
        return await cluster.client.get(path, **query)
    except ApiError:
        return None


def system_namespace(signals: Object | None) -> str:
    """Return the namespace of the installation: the one of the APIService of the signals."""
    service = (signals or {}).get("spec", {}).get("service") or {}
    return str(service.get("namespace") or SYSTEM_NAMESPACE)


def settings_of(deployment: Object | None) -> dict[str, str]:
    """Return the operator's settings, `--name=value` on its command line."""
    if deployment is None:
        return {}
    (container, *_) = deployment["spec"]["template"]["spec"]["containers"]
    words = [*container.get("command", ()), *container.get("args", ())]
    pairs = (word.removeprefix("--").partition("=") for word in words if word.startswith("--"))
    return {name: value for name, _, value in pairs}
