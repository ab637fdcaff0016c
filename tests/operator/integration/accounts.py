"""Service accounts with the rights that an administrator gives an operator."""

from dataclasses import dataclass
from typing import Any

from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object

ACCOUNT = "tenant-operator"
_CLUSTER_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@dataclass(frozen=True)
class Account:
    """A service account, and what an administrator gives it."""

    kube: KubeClient
    namespace: str
    name: str = ACCOUNT

    async def create(self) -> None:
        """Create it. It may list nodes, as every operator may."""
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        await self.kube.create(accounts, {"metadata": {"name": self.name}})
        nodes = self._binding(self.namespace, "ClusterRole", "streamgraft-operator-nodes")
        await self.kube.create(_CLUSTER_BINDINGS, nodes)

    async def delete(self) -> None:
        """Take away what is not in its namespace."""
        await self.kube.delete(f"{_CLUSTER_BINDINGS}/{self.namespace}")

    async def give(self, role: Object) -> None:
        """Create a role in the account's own namespace, and bind it to the account there."""
        await self.kube.create(_rbac(self.namespace, "roles"), role)
        await self.bind(self.namespace, "Role", role["metadata"]["name"])

    async def bind(self, namespace: str, kind: str, role: str) -> None:
        """Bind a role to it in a namespace."""
        binding = self._binding(role, kind, role)
        await self.kube.create(_rbac(namespace, "rolebindings"), binding)

    async def config(self, admin: KubeConfig, pod: str | None = None) -> KubeConfig:
        """Return how to connect as this account, with a token that is bound to a pod if asked."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.name}/token"
        spec: dict[str, Any] = {"expirationSeconds": 3600}
        if pod:
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod}
        token = (await self.kube.create(path, {"spec": spec}))["status"]["token"]
        return KubeConfig(admin.server, self.namespace, admin.ca_data, token=token)

    def _binding(self, name: str, kind: str, role: str) -> Object:
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        return {
            "metadata": {"name": name},
            "roleRef": {"kind": kind, "name": role},
            "subjects": [subject],
        }


def _rbac(namespace: str, plural: str) -> str:
    return f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"
