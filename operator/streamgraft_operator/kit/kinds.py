"""The kinds that the operator reads and writes, and their places in the API."""

from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.kube.store import Key


@dataclass(frozen=True)
class ResourcePath:
    """A namespaced kind of the API."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of an object, of a namespace's collection, or of all objects."""
        group = "/apis/" if "/" in self.api_version else "/api/"
        place = f"/namespaces/{namespace}" if namespace else ""
        tail = f"/{name}" if name else ""
        return f"{group}{self.api_version}{place}/{self.plural}{tail}"

    def of(self, key: Key) -> str:
        """Return the URL path of an object."""
        return self.path(*key)


JOBS = ResourcePath(names.API_VERSION, "Job", "jobs")
PROCESSING_ELEMENTS = ResourcePath(names.API_VERSION, "ProcessingElement", "processingelements")
REGIONS = ResourcePath(names.API_VERSION, "ParallelRegion", "parallelregions")
HOST_POOLS = ResourcePath(names.API_VERSION, "HostPool", "hostpools")
SAVEPOINTS = ResourcePath(names.API_VERSION, "Savepoint", "savepoints")
NODES = ResourcePath("v1", "Node", "nodes")
PODS = ResourcePath("v1", "Pod", "pods")
CONFIG_MAPS = ResourcePath("v1", "ConfigMap", "configmaps")
SERVICES = ResourcePath("v1", "Service", "services")
SECRETS = ResourcePath("v1", "Secret", "secrets")
CLAIMS = ResourcePath("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENTS = ResourcePath("v1", "Event", "events")
SERVICE_ACCOUNTS = ResourcePath("v1", "ServiceAccount", "serviceaccounts")
ROLE_BINDINGS = ResourcePath("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
AUTOSCALERS = ResourcePath("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
LEASES = ResourcePath("coordination.k8s.io/v1", "Lease", "leases")
