"""The chart on the node: what it needs there, installed, upgraded, and taken away again."""

import os
from pathlib import Path

from tests.chart.helm import CHART, succeeds
from tests.node import image, others
from tests.node.node import Node
from tests.node.waiting import until

from streamgraft_common import names
from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import ROLE_BINDING, SERVICE_ACCOUNT
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import KINDS

JOBS = "default"
"""Namespace of jobs."""
_CLAIM = "streamgraft-checkpoints"
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_MANAGER = "test-node"
_CLAIMS = {
    _CLAIM: (10001, (JOBS, SYSTEM_NAMESPACE)),
    "data-streamgraft-kafka-0": (1000, (SYSTEM_NAMESPACE,)),
    "data-streamgraft-prometheus-0": (65534, (SYSTEM_NAMESPACE,)),
}
"""Users that own their volumes, and namespaces that have such a claim."""
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PROGRAMS = ("deployments", "statefulsets")
BROKERS = f"streamgraft-kafka.{SYSTEM_NAMESPACE}.svc:9092"
PROMETHEUS = f"http://streamgraft-prometheus.{SYSTEM_NAMESPACE}.svc:9090"
"""How the chart's own Kafka and Prometheus are reached, in pods and beside them."""


class Release:
    """The release `streamgraft` of the chart."""

    def __init__(self, node: Node, client: KubeClient) -> None:
        self._node, self._client = node, client

    async def prepare(self, volumes: Path) -> None:
        """Make what the chart expects: restricted namespaces, and volumes for its claims."""
        for claim, (user, namespaces) in _CLAIMS.items():
            folder = volumes / claim
            folder.mkdir(parents=True)
            os.chown(folder, user, user)
            for namespace in namespaces:
                volume = _volume(namespace, claim, folder)
                await self._client.create("/api/v1/persistentvolumes", volume)
        for namespace in (JOBS, SYSTEM_NAMESPACE):
            body: Object = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": _RESTRICTED},
            }
            await self._client.apply(f"/api/v1/namespaces/{namespace}", body, _MANAGER)

    async def install(self) -> None:
        """Install the chart, and wait until all of it is available."""
        succeeds("install", *self._where(), *self._values())
        await self.available()

    async def upgrade(self, *settings: str) -> None:
        """Upgrade the release with other values."""
        succeeds("upgrade", *self._where(), *self._values(), *settings)
        await self.available()

    async def uninstall(self) -> None:
        """Take the release away, and what the page on installing says that stays."""
        succeeds("uninstall", "streamgraft", "--wait", *self._access())
        await self._delete_definitions()
        for kind in (SERVICE_ACCOUNT, ROLE_BINDING):
            await self._client.delete(kind.path(JOBS, names.SERVICE_ACCOUNT_PE))
        path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}"
        await self._client.delete(path)

        async def gone() -> bool:
            listed = (await self._client.get("/api/v1/namespaces"))["items"]
            return SYSTEM_NAMESPACE not in {item["metadata"]["name"] for item in listed}

        await until("the namespace is gone", gone)

    async def _delete_definitions(self) -> None:
        """Delete the definitions: they would wait for an object with a finalizer for ever."""
        for kind in KINDS:
            await self._client.delete(f"{_DEFINITIONS}/{kind.qualified}")

        async def gone() -> bool:
            listed = (await self._client.get(_DEFINITIONS))["items"]
            return not any(item["spec"]["group"] == names.GROUP for item in listed)

        await until("the definitions are gone", gone)

    async def available(self) -> None:
        """Wait until all replicas are ready and the API server asks the adapter."""
        path = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}"

        async def rolled_out() -> bool:
            found = [await self._client.get(f"{path}/{kind}") for kind in _PROGRAMS]
            return all(_rolled_out(item) for listing in found for item in listing["items"])

        await until("all programs are rolled out", rolled_out)
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
            "kafka.create": "true",
            "kafka.broker.image": others.KAFKA,
            "prometheus.create": "true",
            "prometheus.image": others.PROMETHEUS,
            "checkpoints.createClaimsIn": f"{{{JOBS},{SYSTEM_NAMESPACE}}}",
            "checkpoints.operatorClaim": _CLAIM,
            "operator.driverStarts": "1",
        }
        return tuple(
            part for name, value in values.items() for part in ("--set", f"{name}={value}")
        )


def _rolled_out(program: Object) -> bool:
    status, wanted = program.get("status", {}), program["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    seen: bool = status.get("observedGeneration") == program["metadata"]["generation"]
    return seen and counts == [wanted] * 3


def _volume(namespace: str, claim: str, folder: Path) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{claim}-{namespace}"},
        "spec": {
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": namespace, "name": claim},
        },
    }
