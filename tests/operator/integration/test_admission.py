"""What a stolen token can't do: the admission policies, on the real API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.operator.integration.accounts import Account
from tests.operator.integration.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD, ROLE_BINDING, SECRET, SERVICE_ACCOUNT
from streamgraft_common.kube import ApiError, KubeClient, load_config
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT, SAVEPOINT
from streamgraft_local import Cluster
from streamgraft_operator.manifests.access import role_binding, service_account

pytestmark = pytest.mark.integration

OWNED = "belong to a streamgraft[.]io Job"
RUNTIME = {"status": {"runtime": {"pod": "mine", "epoch": 7}}}


@pytest.fixture
async def pes(world: World) -> World:
    """Two PEs, each of which names a pod that nobody runs."""
    client, namespace = world.client, world.namespace
    await client.create(SERVICE_ACCOUNT.path(namespace), service_account(namespace))
    await client.create(ROLE_BINDING.path(namespace), role_binding(namespace))
    for number, name in enumerate(("mine", "theirs")):
        spec = {
            "job": "j",
            "peId": number,
            "stageName": name,
            "contentId": "",
            "operators": [],
            "shards": [0],
        }
        manifest = PROCESSING_ELEMENT.manifest(name, namespace, spec)
        await client.create(PROCESSING_ELEMENT.path(namespace), manifest)
        status = {"status": {"pod": name, "launchCount": 1}}
        await client.patch(PROCESSING_ELEMENT.path(namespace, name) + "/status", status)
        pod = {
            "metadata": {"name": name},
            "spec": {
                "serviceAccountName": names.SERVICE_ACCOUNT_PE,
                "schedulerName": "nobody",
                "containers": [{"name": "pe", "image": "none"}],
            },
        }
        await client.create(POD.path(namespace), pod)
    return world


@asynccontextmanager
async def pe(world: World, cluster: Cluster, pod: str | None) -> AsyncIterator[KubeClient]:
    """A client with the token of the account of PEs, bound to a pod if one is named."""
    account = Account(world.client, world.namespace, names.SERVICE_ACCOUNT_PE)
    await account.until_bound(world.namespace, "ClusterRole", names.SERVICE_ACCOUNT_PE)
    async with KubeClient(await account.config(load_config(cluster.kubeconfig), pod)) as client:
        yield client


async def refused(client: KubeClient, world: World, name: str, patch: dict[str, Any]) -> str:
    """Return why a write to a PE's status is refused."""
    with pytest.raises(ApiError) as error:
        await client.patch(PROCESSING_ELEMENT.path(world.namespace, name) + "/status", patch)
    assert error.value.code in (403, 422)
    return str(error.value)


async def test_a_pe_speaks_for_itself_only(pes: World, cluster: Cluster) -> None:
    """It could forge a release of another's shards, or name its own pod as another PE's."""
    async with pe(pes, cluster, "mine") as client:
        path = PROCESSING_ELEMENT.path(pes.namespace, "mine") + "/status"
        for _ in range(2):  # without a runtime before, and with one
            written = await client.patch(path, RUNTIME)
        assert written["status"]["runtime"]["epoch"] == 7
        assert "that names it" in await refused(client, pes, "theirs", RUNTIME)
        taken = {"status": {"pod": "mine"}}
        assert "that names it" in await refused(client, pes, "theirs", taken)
        for forged in ({"launchCount": 9}, {"pod": "theirs"}, {"phase": "Running"}, {"pod": None}):
            why = await refused(client, pes, "mine", {"status": forged})
            assert "all else is the operator's" in why


async def test_a_token_without_a_pod_speaks_for_none(pes: World, cluster: Cluster) -> None:
    async with pe(pes, cluster, None) as client:
        assert "bound to a pod" in await refused(client, pes, "mine", RUNTIME)


async def test_the_operator_changes_only_secrets_of_jobs(world: World, cluster: Cluster) -> None:
    """One that is stolen can't put other credentials into a Secret that somebody else reads."""
    account = Account(world.client, world.namespace, "streamgraft-operator")
    await account.create()
    await account.bind(world.namespace, "ClusterRole", "streamgraft-operator")
    job = JOB.manifest("j", world.namespace, {"bundle": {"configMap": {"name": "b"}}})
    uid = (await world.client.create(JOB.path(world.namespace), job))["metadata"]["uid"]
    owner = {"apiVersion": names.API_VERSION, "kind": "Job", "name": "j", "uid": uid}
    for name, owners in (("users", []), ("j-tls", [owner])):
        manifest = {"metadata": {"name": name, "ownerReferences": owners}}
        await world.client.create(SECRET.path(world.namespace), manifest)
    config = await account.config(load_config(cluster.kubeconfig))
    async with KubeClient(config) as client:
        data = {"stringData": {"password": "another"}}
        await client.patch(SECRET.path(world.namespace, "j-tls"), data)
        with pytest.raises(ApiError, match=OWNED):
            await client.patch(SECRET.path(world.namespace, "users"), data)
        adopted = {"metadata": {"ownerReferences": [owner]}}
        with pytest.raises(ApiError, match=OWNED):
            await client.patch(SECRET.path(world.namespace, "users"), adopted)
    await account.delete()


async def test_the_name_of_the_operator_is_worth_nothing_without_its_rights(
    world: World, cluster: Cluster
) -> None:
    """Whoever may create accounts in a namespace may call one like this."""
    account = Account(world.client, world.namespace, "streamgraft-operator")
    await account.create()
    await account.bind(world.namespace, "ClusterRole", "streamgraft-edit")
    path = SAVEPOINT.path(world.namespace)
    async with KubeClient(await account.config(load_config(cluster.kubeconfig))) as client:
        for name, spec in (
            ("mine", {"job": "j", "consistentRegion": "all", "operators": ["write"]}),
            ("j-all-cut-3", {"job": "j"}),
        ):
            with pytest.raises(ApiError, match=r"of consistent regions|of the ConsistentRegion"):
                await client.create(path, SAVEPOINT.manifest(name, world.namespace, spec))
        await client.create(path, SAVEPOINT.manifest("mine", world.namespace, {"job": "j"}))
    await account.delete()


async def test_cuts_are_made_by_the_operator_alone(world: World, cluster: Cluster) -> None:
    """Sinks commit what is in one, and files go by the names of earlier ones."""
    path = SAVEPOINT.path(world.namespace)
    cut = {"job": "j", "consistentRegion": "all", "operators": ["write"]}
    made = "raise spec.requested or spec.rollbackRequested of the ConsistentRegion"
    named = "names that end in -cut-<number> or -rollback-<number>"
    for name, spec, why in (
        ("mine", cut, made),
        ("mine", {"job": "j", "rollsBackTo": "j-all-cut-1"}, made),
        ("j-all-cut-3", {"job": "j"}, named),
        ("j-all-rollback-3", {"job": "j"}, named),
    ):
        with pytest.raises(ApiError, match=why):
            await world.client.create(path, SAVEPOINT.manifest(name, world.namespace, spec))
    for name in ("before-the-cut", "cut-3-of-mine"):
        await world.client.create(path, SAVEPOINT.manifest(name, world.namespace, {"job": "j"}))
    account = Account(world.client, world.namespace, "streamgraft-operator")
    await account.create()
    await account.bind(world.namespace, "ClusterRole", "streamgraft-operator")
    async with KubeClient(await account.config(load_config(cluster.kubeconfig))) as client:
        # The second is of a width change of a region that is called `cut`.
        for name, spec in (("j-all-cut-3", cut), ("j-cut-1732832123", {"job": "j"})):
            await client.create(path, SAVEPOINT.manifest(name, world.namespace, spec))
    await account.delete()
