"""Kinds of the API: the type of all of them, and those of Kubernetes that we read or write.

Our own are in `streamgraft_common.resources`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of object, as the API server serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; the core group is the empty text."""
        return self.api_version.rpartition("/")[0]

    @property
    def qualified(self) -> str:
        """What paths of the metrics API call it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of an object, of a namespace's collection, or of all objects."""
        root = "/apis/" if self.group else "/api/"
        place = f"/namespaces/{namespace}" if namespace else ""
        tail = f"/{name}" if name else ""
        return f"{root}{self.api_version}{place}/{self.plural}{tail}"

    def of(self, key: tuple[str, str]) -> str:
        """Return the URL path of an object, given its namespace and name."""
        return self.path(*key)


_RBAC = "rbac.authorization.k8s.io/v1"

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
EVENT = Kind("v1", "Event", "events")
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("v1", "Node", "nodes", namespaced=False)
PERSISTENT_VOLUME_CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
POD = Kind("v1", "Pod", "pods")
SECRET = Kind("v1", "Secret", "secrets")
SERVICE = Kind("v1", "Service", "services")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
AUTOSCALER = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
ROLE = Kind(_RBAC, "Role", "roles")
ROLE_BINDING = Kind(_RBAC, "RoleBinding", "rolebindings")
CLUSTER_ROLE = Kind(_RBAC, "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
API_SERVICE = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False)
ADMISSION_POLICY = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
ADMISSION_POLICY_BINDING = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
