"""The operator's roles: it needs all of them and nothing else, and gets nothing else."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.operator.integration.accounts import ACCOUNT, Account
from tests.operator.integration.conftest import running
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle, condition
from tests.rights import Use, use_of, uses_of

from streamgraft_common import names
from streamgraft_common.access import NODES, OPERATOR, OWN, namespaced_roles
from streamgraft_common.kinds import AUTOSCALER, LEASE, POD, SECRET, SERVICE
from streamgraft_common.kube import ApiError, KubeClient, KubeConfig, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    EXPORT,
    HOST_POOL,
    IMPORT,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    TEST_SUITE,
)
from streamgraft_common.resources.base import CustomKind
from streamgraft_local import Cluster
from streamgraft_operator import assembly
from streamgraft_operator.kit.leadership import Elector, Term, replica
from streamgraft_operator.settings import Settings

pytestmark = pytest.mark.integration


class RecordingClient(KubeClient):
    """A client that notes what it calls."""

    def __init__(self, config: KubeConfig) -> None:
        super().__init__(config)
        self.used: set[Use] = set()

    def _open(
        self, method: str, path: str, body: Any, query: Mapping[str, str] | None, *rest: Any
    ) -> Any:
        self.used.add(use_of(method, path, query or {}))
        return super()._open(method, path, body, query, *rest)


@pytest.fixture
async def tenant(cluster: Cluster, account: Account) -> KubeConfig:
    """An account with the role of an operator for one namespace."""
    (role,) = namespaced_roles()
    await account.give(role)
    return await account.config(load_config(cluster.kubeconfig))


async def test_operator_for_one_namespace_uses_all_its_rights(
    tenant: KubeConfig, world: World, player: HandPlayedPe, source_topic: str, settings: Settings
) -> None:
    """From a job that can't start yet to one that is gone, by two replicas one after the other."""
    lease = world.namespace, "streamgraft-operator"
    adl = application(world.namespace)
    settings = replace(settings, own_namespace=world.namespace)
    async with RecordingClient(tenant) as client:

        async def operate(stopping: asyncio.Event) -> None:
            elector = Elector(client, lease, "me", Term())
            await replica.run(elector, partial(assembly.run, client, settings), stopping)

        # Each width change by savepoint makes one, and removes the one of the change before.
        await world.submit(warmPool=1, regions={"r": {"strategy": "savepoint"}})
        stopping = asyncio.Event()
        async with running(operate(stopping)) as first:
            job = await world.job_in("Pending")
            assert condition(job, "Accepted")["reason"] == "BundleMissing"
            stopping.set()
            await first
        async with running(operate(asyncio.Event())):
            await _reported_twice(world, "BundleMissing")
            await _streams_shared(world, adl)
            await _suite_refused(world)
            await world.create_pool("pool", tags=["none"])
            own = {"name": "own", "tags": ["none"]}
            await world.upload(bundle({**_consistent(_autoscaled(adl), 1), "hostPools": [own]}))
            await _certificate_renewed(world)
            await world.job_in("Healthy")
            await _drifts(world, "job-r")
            await world.eventually(HOST_POOL, "pool", lambda pool: pool and "status" in pool)
            await world.until(partial(_pod_waits, world))
            await world.scale("job-r", 2)
            await world.serving("job-r", 2)
            await world.scale("job-r", 1)
            await world.eventually(SERVICE, "job-3", lambda item: item is None)
            conf: Object = {
                "parameters": {"speed": "2"},
                "pe": {"sparkConf": {"spark.edited": "true"}},
            }
            conf["hostPools"] = [{**own, "tags": ["others"]}]
            await world.upload(bundle({**_consistent(adl, 2), **conf}))
            await world.pe("job-2", lambda item: item["status"]["launchCount"] == 2)
            await world.eventually(AUTOSCALER, "job-r", lambda item: item is None)
            await world.upload(bundle(_without_region(adl)))
            await world.eventually(PARALLEL_REGION, "job-r", lambda item: item is None)
            await world.upload(bundle({**adl, "hostPools": [own]}))
            await world.serving("job-r", 1)
            await world.job_in("Healthy")
            await world.client.delete(JOB.path(world.namespace, "job"))
            await world.eventually(JOB, "job", lambda job: job is None)

    allowed = uses_of((*OPERATOR, *OWN, *NODES))
    # No calls of their own, or only in conflicts and for what a job names: bind, get.
    implied = {use for use in allowed if use[2] in ("bind", "get")}
    assert client.used <= allowed
    assert allowed - implied <= client.used


async def _streams_shared(world: World, adl: dict[str, Any]) -> None:
    """Let a job export and import a stream, declare it anew, do without it, and go."""

    async def until(kind: CustomKind, name: str, holds: Callable[[Object | None], bool]) -> None:
        await world.eventually(kind, f"sharing-{name}", holds)

    await world.upload(bundle(_sharing(adl, 1)), "sharing")
    await world.submit("sharing", bundle={"configMap": {"name": "sharing", "key": "bundle.zip"}})
    await until(IMPORT, "in", lambda item: bool(item and (item.get("status") or {}).get("exports")))
    await until(EXPORT, "out", lambda item: bool(item and (item["status"] or {}).get("imports")))
    await world.upload(bundle(_sharing(adl, 2)), "sharing")
    await until(
        IMPORT, "in", lambda item: bool(item and item["spec"]["subscription"] == "level == 2")
    )
    await until(
        EXPORT, "out", lambda item: bool(item and item["spec"]["properties"] == {"level": 2})
    )
    await world.upload(bundle(adl), "sharing")
    await until(EXPORT, "out", lambda item: item is None)
    await until(IMPORT, "in", lambda item: item is None)
    await world.upload(bundle(_sharing(adl, 1)), "sharing")
    await until(IMPORT, "in", lambda item: bool(item and (item.get("status") or {}).get("exports")))
    await world.client.delete(JOB.path(world.namespace, "sharing"))
    await until(IMPORT, "in", lambda item: item is None)
    await world.eventually(JOB, "sharing", lambda job: job is None)


def _sharing(adl: dict[str, Any], level: int) -> dict[str, Any]:
    """Return the application with an export, and an import of it."""
    raw = adl["streams"][0]
    stream = {**raw, "name": "in", "producer": "in"}
    exported = {"properties": {"level": level}}
    imported = {"subscription": f"level == {level}"}
    added = [
        {"name": "out", "kind": "export", "inputs": [raw["name"]], "exported": exported},
        {"name": "in", "kind": "import", "outputs": ["in"], "imported": imported},
        {**adl["operators"][-1], "name": "keep", "inputs": ["in"]},
    ]
    added[-1]["kafka"] = {**added[-1]["kafka"], "topic": f"{added[-1]['kafka']['topic']}-shared"}
    operators, streams = [*adl["operators"], *added], [*adl["streams"], stream]
    return {**adl, "operators": operators, "streams": streams}


async def _suite_refused(world: World) -> None:
    """Let the operator say that a test suite makes no sense."""
    empty = {"scenarios": [{"name": "empty"}]}
    manifest = TEST_SUITE.manifest("suite", world.namespace, empty)
    await world.client.create(TEST_SUITE.path(world.namespace), manifest)
    await world.eventually(
        TEST_SUITE, "suite", lambda item: condition(item or {}, "Accepted").get("status") == "False"
    )


async def _pod_waits(world: World) -> bool:
    return bool(await world.names(POD, names.LABEL_POOL))


async def _certificate_renewed(world: World) -> None:
    """Let a job have a certificate, then another one; a Secret that is not its own stays."""
    secret = SECRET.path(world.namespace, "sealed-tls")
    await world.client.create(SECRET.path(world.namespace), {"metadata": {"name": "sealed-tls"}})
    brokers = {"bootstrapServers": "127.0.0.1:1"}
    await world.submit("sealed", transportSecurity={"type": "TLS"}, **brokers)
    await world.job(
        lambda status: condition({"status": status}, "Accepted").get("reason") == "SecretTaken",
        "sealed",
    )
    assert "data" not in await world.client.get(secret)
    await world.client.delete(secret)
    first = await world.eventually(SECRET, "sealed-tls", lambda item: item)
    days = {"spec": {"transportSecurity": {"certificateValidityDays": 7}}}
    await world.client.patch(JOB.path(world.namespace, "sealed"), days)
    await world.eventually(
        SECRET, "sealed-tls", lambda item: item and item["data"] != first["data"]
    )


def _consistent(adl: dict[str, Any], cuts: int) -> dict[str, Any]:
    """Return the application with a consistent region of its source, which is cut once."""
    region = {"name": "c", "operators": ["read"], "trigger": "operatorDriven"}
    return {**adl, "consistentRegions": [{**region, "retainedCuts": cuts}]}


def _autoscaled(adl: dict[str, Any]) -> dict[str, Any]:
    (region,) = adl["regions"]
    return {**adl, "regions": [{**region, "autoscaling": {"maxWidth": 3}}]}


async def _drifts(world: World, region: str) -> None:
    """Wait for the generated autoscaler, change it, and wait until it is as it was."""

    def kept(item: Object | None) -> bool:
        return item is not None and item["spec"]["maxReplicas"] == 3

    await world.eventually(AUTOSCALER, region, kept)
    path = AUTOSCALER.path(world.namespace, region)
    await world.client.patch(path, {"spec": {"maxReplicas": 9}})
    await world.eventually(AUTOSCALER, region, kept)


def _without_region(adl: dict[str, Any]) -> dict[str, Any]:
    read, _, write = adl["operators"]
    other = {**write, "name": "other", "inputs": ["raw"]}  # `write` has read another stream so far
    return {**adl, "operators": [read, other], "regions": []}


async def _reported_twice(world: World, reason: str) -> None:
    """Wait until an event was counted a second time."""
    async with asyncio.timeout(60):
        while True:
            events = await world.events()
            if any(event["reason"] == reason and event["count"] == 2 for event in events):
                return
            await asyncio.sleep(0.05)


async def test_everything_else_is_refused(tenant: KubeConfig, world: World) -> None:
    """The role's own namespace is all it sees, and there only what it works with."""
    place = f"/api/v1/namespaces/{world.namespace}"
    binding = {
        "metadata": {"name": "more"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": world.namespace}],
    }
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.namespace}/rolebindings"
    pod = {"metadata": {"name": "stray"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    async with KubeClient(tenant) as client:
        for call in (
            client.get(f"{place}/secrets"),
            client.get(JOB.path()),
            client.get(PROCESSING_ELEMENT.path("default")),
            client.get(LEASE.path("streamgraft-system")),
            client.create(POD.path("default"), pod),
            client.delete(JOB.path(world.namespace, "job")),
            client.create(bindings, binding),
        ):
            with pytest.raises(ApiError, match="is forbidden") as refused:
                await call
            assert refused.value.code == 403
