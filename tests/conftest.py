"""Fixtures for tests on real parts: one embedded environment per session, a namespace per test."""

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from streamgraft._analysis_session import analysis_session
from streamgraft_common.kube import KubeClient, NotFound, load_config
from streamgraft_local import Cluster, ClusterSpec, toolchain
from streamgraft_local.progress import silent

NAMESPACE_PREFIX = "test-"
NAMESPACE_GONE_SECONDS = 90

UNTIL = "STREAMGRAFT_TESTS_UNTIL"
"""Unix time after which no further test begins. Where it is set, CI ends whoever takes longer, and
a machine a third as fast as others would never see a result."""

# A busy machine is slow, not wrong.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what there is no time for any more."""
    until = os.environ.get(UNTIL)
    if until and time.time() > float(until):
        pytest.skip(f"NOT RUN, no time left on this machine: {item.nodeid}")


LEFT_OPEN = (
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
    "ignore:Exception ignored in. <function _SelectorTransport:"
    "pytest.PytestUnraisableExceptionWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where parts are killed on purpose, a connection may be left open: asyncio does so if whoever
    makes it is cancelled amid the handshake. It is noticed in any later test, which then failed."""
    for item in items:
        if item.get_closest_marker("integration"):
            for warning in LEFT_OPEN:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session", autouse=True)
def driver_tools(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests on real parts find Java and the connector's jars, also where none is installed."""
    marks = {mark.name for item in request.session.items for mark in item.iter_markers()}
    with pytest.MonkeyPatch.context() as patch:
        if marks & {"integration", "e2e"}:
            tools = toolchain.prepare(silent)
            patch.setenv("STREAMGRAFT_JAVA", str(tools.java))
            patch.setenv("STREAMGRAFT_JARS", str(tools.driver_jars))
            if tools.cds_archive:
                patch.setenv("STREAMGRAFT_CDS_ARCHIVE", str(tools.cds_archive))
        yield


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A small local driver, instead of the plugin's, which stays for the session.

    A process has one driver at most, and some modules bring one with the settings of a PE.
    """
    with analysis_session({"spark.sql.shuffle.partitions": "1"}) as session:
        yield session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running environment of its own, shared by all tests of the session."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    base = tmp_path_factory.mktemp("clusters")
    environment = Cluster(ClusterSpec(name=f"test-{uuid.uuid4().hex[:8]}", base=base))
    try:
        environment.up()
        yield environment
        asyncio.run(_all_namespaces_gone(environment))
    finally:
        environment.down()
    assert [process.command() for process in environment.leftovers()] == []


@pytest.fixture(scope="module")
def without_operator(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with its own operator stopped: the tests bring theirs.

    For a module, since a folder without `__init__.py` is no package: for that, pytest would start
    it again at the end of the session, and tests of other folders need it.
    """
    cluster.stop("operator")
    yield cluster
    cluster.start("operator")


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[KubeClient]:
    """A client with the administrator's rights."""
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A fresh namespace in which pods can be created."""
    async with fresh_namespace(kube) as name:
        yield name


@asynccontextmanager
async def fresh_namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A namespace in which pods can be created.

    Afterwards it must go away completely, but no test waits for that: Kubernetes takes five seconds
    and more for each. Its pods end at once; nothing can make new ones in it.
    """
    name = f"{NAMESPACE_PREFIX}{uuid.uuid4().hex[:8]}"
    path = f"/api/v1/namespaces/{name}"
    await kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    await _until_exists(kube, f"{path}/serviceaccounts/default", True, 30)
    yield name
    await kube.delete(path)
    for pod in (await kube.get(f"{path}/pods"))["items"]:
        with suppress(NotFound):
            await kube.delete(f"{path}/pods/{pod['metadata']['name']}")


async def _all_namespaces_gone(cluster: Cluster) -> None:
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        found = (await client.get("/api/v1/namespaces"))["items"]
        names = (item["metadata"]["name"] for item in found)
        ours = [name for name in names if name.startswith(NAMESPACE_PREFIX)]
        for path in (f"/api/v1/namespaces/{name}" for name in ours):
            await _until_exists(client, path, False, NAMESPACE_GONE_SECONDS)


async def _until_exists(kube: KubeClient, path: str, wanted: bool, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if await _exists(kube, path) == wanted:
                return
            await asyncio.sleep(0.05)


async def _exists(kube: KubeClient, path: str) -> bool:
    try:
        await kube.get(path)
    except NotFound:
        return False
    return True
