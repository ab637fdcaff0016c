"""Where the operator is installed, and with which settings, as far as we may see that."""

from enum import Enum

from streamgraft.cli._cluster import Cluster
from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import API_SERVICE, DEPLOYMENT
from streamgraft_common.kube import ApiError, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION

SIGNALS = "custom.metrics.k8s.io"


def signal_path(namespace: str, region: str, signal: str) -> str:
    """Return where the API server serves a signal of a region; of all: region `*`."""
    return (
        f"/apis/{SIGNALS}/v1beta2/namespaces/{namespace}/{PARALLEL_REGION.qualified}"
        f"/{region}/{signal}"
    )


class Unseen(Enum):
    """Why an object is not to be seen."""

    ABSENT = "absent"
    HIDDEN = "hidden"
    """It may be there: we are not shown."""


async def find_api_service(cluster: Cluster, group: str) -> Object | Unseen:
    """Return the APIService of the newest version of a group of metrics."""
    for version in ("v1beta2", "v1beta1"):
        found = await look(cluster, API_SERVICE.path("", f"{version}.{group}"))
        if found is not Unseen.ABSENT:
            return found
    return Unseen.ABSENT


async def api_service(cluster: Cluster, group: str) -> Object | None:
    """Return that APIService; None if it is not there, or is not shown to us."""
    return shown(await find_api_service(cluster, group))


async def operator(cluster: Cluster, system: str) -> Object | None:
    """Return the operator's Deployment in a namespace."""
    return await tried(cluster, DEPLOYMENT.path(system, "streamgraft-operator"))


async def default_image(cluster: Cluster) -> str | None:
    """Return the image that the operator gives pods of jobs that name none; None: not known."""
    system = system_namespace(await api_service(cluster, SIGNALS))
    return settings_of(await operator(cluster, system)).get("image")


async def look(cluster: Cluster, path: str, **query: str) -> Object | Unseen:
    """Return an object, or a list object."""
    try:
        return await cluster.client.get(path, **query)
    except NotFound:
        return Unseen.ABSENT
    except ApiError:
        return Unseen.HIDDEN


def shown(found: Object | Unseen) -> Object | None:
    """Return what was seen, if anything was."""
    return None if isinstance(found, Unseen) else found


async def tried(cluster: Cluster, path: str, **query: str) -> Object | None:
    """Return an object, or a list object; None if it is not there, or is not shown to us."""
    return shown(await look(cluster, path, **query))


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
