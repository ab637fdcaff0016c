"""One operator for some namespaces, under the roles that docs/operate/operations.md asks for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient
from tests.operator.integration.accounts import Account
from tests.operator.integration.conftest import create_source_topic, new_world, running
from tests.operator.integration.world import World, application, bundle

from streamgraft_common import names
from streamgraft_common.access import OWN, role
from streamgraft_common.kinds import POD, SECRET
from streamgraft_common.kube import ApiError, KubeClient, KubeConfig, load_config
from streamgraft_common.resources import JOB
from streamgraft_local import Cluster
from streamgraft_operator import assembly
from streamgraft_operator.kit.leadership import Elector, Term, replica
from streamgraft_operator.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture
async def watched(kube: KubeClient, kafka: AdminClient) -> AsyncIterator[tuple[World, World]]:
    """Two namespaces that the operator looks after."""
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(new_world(kube)) for _ in range(2)]
        for world in (first, second):
            create_source_topic(kafka, world)
        yield first, second


@pytest.fixture
async def tenant(cluster: Cluster, account: Account, watched: tuple[World, World]) -> KubeConfig:
    """An account with the operator's role in both, and little in its own namespace."""
    await account.give(role("Role", "streamgraft-operator-own", OWN))
    for world in watched:
        await account.bind(world.namespace, "ClusterRole", "streamgraft-operator")
    return await account.config(load_config(cluster.kubeconfig))


async def test_operator_for_some_namespaces(
    tenant: KubeConfig, world: World, watched: tuple[World, World], settings: Settings
) -> None:
    """`world`, where it runs, is none of those that it looks after."""
    first, second = watched
    for place in (world, first, second):
        await place.upload(bundle(application(place.namespace)))
        await place.submit()
    namespaces = (first.namespace, second.namespace)
    settings = replace(settings, namespaces=namespaces, own_namespace=world.namespace)
    async with KubeClient(tenant) as client:
        elector = Elector(client, (world.namespace, "streamgraft-operator"), "me", Term())
        operate = partial(assembly.run, client, settings)
        async with running(replica.run(elector, operate, asyncio.Event())):
            await first.job_in("Submitted")
            await second.job_in("Submitted")
            await second.until(partial(_has_pods, second, 3))
            brokers = {"bootstrapServers": "127.0.0.1:1"}
            await first.submit("sealed", transportSecurity={"type": "TLS"}, **brokers)
            await first.eventually(SECRET, "sealed-tls", lambda item: item)
            assert await world.get(SECRET, names.AUTHORITY_SECRET)
            await first.client.delete(JOB.path(first.namespace, "job"))
            await first.eventually(JOB, "job", lambda job: job is None)
        with pytest.raises(ApiError, match="is forbidden"):
            await client.get(JOB.path(world.namespace, "job"))
    assert await _has_pods(second, 3)
    assert await _has_pods(first, 0)
    untouched = await world.get(JOB, "job")
    assert untouched
    assert "status" not in untouched
    assert "finalizers" not in untouched["metadata"]


async def _has_pods(world: World, count: int) -> bool:
    return len(await world.names(POD)) == count
