"""Service accounts with the rights that an administrator gives an operator."""

import asyncio
from dataclasses import dataclass
from typing import Any

from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object

ACCOUNT = "tenant-operator"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_CLUSTER_BINDINGS = f"{_RBAC}/clusterrolebindings"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


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
        """Bind a role to it in a namespace; return when it has the rights."""
        binding = self._binding(role, kind, role)
        await self.kube.create(_rbac(namespace, "rolebindings"), binding)
        await self.until_bound(namespace, kind, role)

    async def until_bound(self, namespace: str, kind: str, role: str) -> None:
        """Wait until it may do in a namespace what a role that is bound to it there is for: the API
        server takes note of a binding a little after it was made."""
        of_one = _rbac(namespace, "roles")
        roles = f"{_RBAC}/clusterroles" if kind == "ClusterRole" else of_one
        rule = (await self.kube.get(f"{roles}/{role}"))["rules"][0]
        resource, _, subresource = rule["resources"][0].partition("/")
        asked = {
            "namespace": namespace,
            "verb": rule["verbs"][0],
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "name": rule.get("resourceNames", [""])[0],
        }
        user = f"system:serviceaccount:{self.namespace}:{self.name}"
        review = {"spec": {"user": user, "resourceAttributes": asked}}
        async with asyncio.timeout(60):
            while not (await self.kube.create(_REVIEWS, review))["status"]["allowed"]:
                await asyncio.sleep(0.1)

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
    return f"{_RBAC}/namespaces/{namespace}/{plural}"
