"""A process node of its own against the real API server, and pods bound to it by name."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgraft_common.kube import KubeClient, NotFound, load_config
from streamgraft_local import Cluster
from streamgraft_local.node.process import kill_marked

Object = dict[str, Any]
DEADLINE_SECONDS = 60.0
FORCED = {"gracePeriodSeconds": 0}


class NodeProcess:
    """`python -m streamgraft_local.node` under a name that no other test uses."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.kubeconfig = cluster.kubeconfig
        self._client_ca = cluster.home.pki / "backend-ca.crt"
        self.home = home
        self.name = f"node-{uuid.uuid4().hex[:8]}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it (again)."""
        command = [sys.executable, "-m", "streamgraft_local.node", "--name", self.name]
        command += ["--kubeconfig", str(self.kubeconfig), "--home", str(self.home)]
        command += ["--image-env", "FROM_IMAGE=image", "--client-ca", str(self._client_ca)]
        with open(self.home.parent / f"{self.name}.log", "ab") as log:
            environment = os.environ | {"STREAMGRAFT_CLUSTER_ID": self.name}
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    async def cordon(self) -> None:
        """Keep the scheduler from giving it pods of other tests: its "image" has no Spark."""
        path = f"/api/v1/nodes/{self.name}"
        async with KubeClient(load_config(self.kubeconfig)) as kube:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while True:
                    try:
                        await kube.patch(path, {"spec": {"unschedulable": True}})
                        return
                    except NotFound:
                        await asyncio.sleep(0.05)

    def send(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(DEADLINE_SECONDS)

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self._process and self._process.poll() is None:
            self.send(signal.SIGTERM)
        kill_marked(self.home)


@pytest.fixture(scope="session")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """Return a node for all tests that don't stop it."""
    process = NodeProcess(cluster, tmp_path_factory.mktemp("node") / "home")
    process.start()
    asyncio.run(process.cordon())
    yield process
    process.end()


@pytest.fixture
def own_node(cluster: Cluster, tmp_path: Path) -> Iterator[NodeProcess]:
    """Return a node that the test may kill and start again."""
    process = NodeProcess(cluster, tmp_path / "home")
    process.start()
    asyncio.run(process.cordon())
    yield process
    process.end()


class Api:
    """The API server in the words of the tests, within one namespace."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def path(self, kind: str, name: str = "") -> str:
        """Return the path of an object or collection of the core group."""
        return f"/api/v1/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    async def create(self, kind: str, name: str, **content: Any) -> Object:
        """Create an object of the core group."""
        return await self.client.create(self.path(kind), {"metadata": {"name": name}} | content)

    async def run(self, node: NodeProcess, name: str, *words: str, **more: Any) -> Object:
        """Create a pod on the node with one container, `main`.

        Keywords that belong to a pod's spec go there, `metadata` too, the rest to the container.
        """
        of_pod = ("volumes", "restartPolicy", "initContainers", "terminationGracePeriodSeconds")
        spec = {key: more.pop(key) for key in of_pod if key in more}
        metadata = {"name": name} | more.pop("metadata", {})
        container = {"name": "main", "image": "none", "command": list(words)} | more
        spec |= {"nodeName": node.name, "containers": [container]}
        return await self.client.create(self.path("pods"), {"metadata": metadata, "spec": spec})

    async def pod(self, name: str) -> Object:
        """Return a pod."""
        return await self.client.get(self.path("pods", name))

    async def until(self, name: str, holds: Callable[[Object], Any]) -> Object:
        """Return the pod once `holds(pod)`; show it if that never happens."""
        last: Object = {}
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while True:
                    last = await self.pod(name)
                    if holds(last):
                        return last
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"never so: {last.get('status')}")

    async def until_phase(self, name: str, phase: str) -> Object:
        """Return the pod once it is in that phase."""
        return await self.until(name, lambda pod: pod["status"].get("phase") == phase)

    async def delete_by_force(self, kind: str, name: str = "") -> None:
        """Delete without giving the node a chance to hear of it first."""
        await self.client.request("DELETE", self.path(kind, name), body=FORCED)

    async def until_gone(self, name: str) -> None:
        """Return once the pod is gone."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                try:
                    await self.pod(name)
                except NotFound:
                    return
                await asyncio.sleep(0.1)

    async def until_removed(self, folder: str) -> None:
        """Return once a folder is gone from the disk."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while Path(folder).exists():  # noqa: ASYNC240  (a disk tells nobody)
                await asyncio.sleep(0.1)

    async def logs(self, name: str, **query: str) -> str:
        """Return a container's log by way of the API server."""
        answer = await self.client.get(self.path("pods", f"{name}/log"), **query)
        return str(answer["text"])

    async def until_logged(self, name: str, text: str) -> str:
        """Return the log once it contains the text."""
        log = ""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while text not in log:
                await asyncio.sleep(0.1)
                try:
                    log = await self.logs(name)
                except NotFound:
                    continue
        return log


@pytest.fixture
async def api(kube: KubeClient) -> AsyncIterator[Api]:
    """Return the API server with a namespace of the test's own, which goes away in its own time."""
    namespace = f"node-test-{uuid.uuid4().hex[:8]}"
    await kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    await _until_account_exists(kube, namespace)
    api = Api(kube, namespace)
    yield api
    await api.delete_by_force("pods")
    await kube.delete(f"/api/v1/namespaces/{namespace}")


async def _until_account_exists(client: KubeClient, namespace: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await client.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
                return
            except NotFound:
                await asyncio.sleep(0.1)
