"""The chart on the node: what it needs there, installed, upgraded, and taken away again."""

import os
from pathlib import Path

from tests.chart.helm import CHART, succeeds
from tests.node import image
from tests.node.node import Node
from tests.node.waiting import until

from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import CLUSTER_ROLE_BINDING
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object

JOBS = "default"
"""Namespace of jobs."""
_CLAIM = "streamgraft-checkpoints"
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_MANAGER = "test-node"
_USER = 10001


class Release:
    """The release `streamgraft` of the chart."""

    def __init__(self, node: Node, client: KubeClient) -> None:
        self._node, self._client = node, client

    async def prepare(self, checkpoints: Path) -> None:
        """Make what the chart expects: restricted namespaces, and a volume for checkpoints."""
        os.mkdir(checkpoints)
        os.chown(checkpoints, _USER, _USER)
        for namespace in (JOBS, SYSTEM_NAMESPACE):
            body: Object = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": _RESTRICTED},
            }
            await self._client.apply(f"/api/v1/namespaces/{namespace}", body, _MANAGER)
            await self._client.create("/api/v1/persistentvolumes", _volume(namespace, checkpoints))

    async def install(self) -> None:
        """Install the chart, and wait until all of it is available."""
        succeeds("install", *self._where(), *self._values())
        await self._client.apply(
            CLUSTER_ROLE_BINDING.path("", "test-node-prometheus"), _PROMETHEUS, _MANAGER
        )
        self._node.start_prometheus()
        await self.available()

    async def upgrade(self, *settings: str) -> None:
        """Upgrade the release with other values."""
        succeeds("upgrade", *self._where(), *self._values(), *settings)
        await self.available()

    def uninstall(self) -> None:
        """Take the release away."""
        succeeds("uninstall", "streamgraft", "--wait", *self._access())

    async def available(self) -> None:
        """Wait until all replicas are ready and the API server asks the adapter."""
        path = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/deployments"

        async def rolled_out() -> bool:
            return all(_rolled_out(item) for item in (await self._client.get(path))["items"])

        await until("the Deployments are rolled out", rolled_out)
        service = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.custom.metrics.k8s.io"

        async def asked() -> bool:
            conditions = (await self._client.get(service))["status"].get("conditions", [])
            return any((c["type"], c["status"]) == ("Available", "True") for c in conditions)

        await until("the API server asks the metrics adapter", asked)

    def _where(self) -> tuple[str, ...]:
        return "streamgraft", str(CHART), *self._access()

    def _access(self) -> tuple[str, ...]:
        return "--kubeconfig", str(self._node.kubeconfig), "--namespace", SYSTEM_NAMESPACE

    def _values(self) -> tuple[str, ...]:
        values = {
            "image.repository": image.REPOSITORY,
            "image.tag": image.TAG,
            "image.pullPolicy": "Never",
            "kafka.bootstrapServers": self._node.brokers,
            "adapter.prometheusUrl": self._node.prometheus_url,
            "checkpoints.createClaimsIn": f"{{{JOBS},{SYSTEM_NAMESPACE}}}",
            "checkpoints.operatorClaim": _CLAIM,
            "operator.driverStarts": "1",
        }
        return tuple(
            part for name, value in values.items() for part in ("--set", f"{name}={value}")
        )


def _rolled_out(deployment: Object) -> bool:
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    seen: bool = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return seen and counts == [wanted] * 3


def _volume(namespace: str, folder: Path) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"checkpoints-{namespace}"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "10Gi"},
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": namespace, "name": _CLAIM},
        },
    }


_PROMETHEUS: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "test-node-prometheus"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "streamgraft-prometheus",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "streamgraft-prometheus"}
    ],
}
"""Prometheus runs outside of the cluster, as a user."""
