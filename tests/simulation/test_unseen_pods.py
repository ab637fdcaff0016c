"""Whether a PE has a pod that runs is asked of the API server itself (the fake one here)."""

import random
import time

import pytest
from tests.simulation.applications import NAMESPACE
from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_kube_client import FakeKubeClient, FakeNetwork

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_operator.pe.unseen import unseen_pods

SELECTOR = f"{names.LABEL_JOB}=job"


@pytest.fixture
async def client() -> FakeKubeClient:
    """A client of an API server that has one pod, on its node, of the PE job-1."""
    server = FakeApiServer(time.time, random.Random(1))
    client = FakeKubeClient(server, FakeNetwork(random.Random(1)))
    labels = {names.LABEL_JOB: "job", names.LABEL_PE: "job-1", names.LABEL_LAUNCH: "1"}
    pod = {"metadata": {"name": "job-1-1", "labels": labels}, "spec": {"nodeName": "node"}}
    await client.create(POD.path(NAMESPACE), pod)
    return client


async def test_a_pod_that_runs_is_found(client: FakeKubeClient) -> None:
    assert await unseen_pods(client, NAMESPACE, SELECTOR, set())


async def test_a_pod_that_was_seen_is_no_news(client: FakeKubeClient) -> None:
    assert not await unseen_pods(client, NAMESPACE, SELECTOR, {"job-1"})


async def test_a_pod_that_has_ended_does_not_matter(client: FakeKubeClient) -> None:
    path = POD.path(NAMESPACE, "job-1-1") + "/status"
    await client.patch(path, {"status": {"phase": "Failed"}})
    assert not await unseen_pods(client, NAMESPACE, SELECTOR, set())


async def test_pods_of_other_jobs_do_not_matter(client: FakeKubeClient) -> None:
    assert not await unseen_pods(client, NAMESPACE, f"{names.LABEL_JOB}=other", set())
