"""What the operator does in a repository when a Savepoint is deleted, shown what Secrets have."""

import asyncio
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.repositories.conftest import PASSWORD, S3_CREDENTIALS, s3_store
from tests.repositories.servers import free_port, redis_server

from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.repositories import Store, manifest
from streamgraft_common.repositories.redis_store import RedisStore
from streamgraft_common.resources import RedisRepository
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kit.external_calls import ExternalCalls, UnderWay
from streamgraft_operator.savepoint import repositories as module
from streamgraft_operator.savepoint.repositories import PATIENCE_SECONDS, Repositories
from streamgraft_operator.settings import Settings

pytestmark = pytest.mark.integration

SETTINGS = Settings(bootstrap_servers="", checkpoint_volume={}, image="")


def deleted(namespace: str, repository: dict[str, Any], seconds_ago: float = 0.0) -> Object:
    """Return a Savepoint that is being deleted, of a job with a repository."""
    settings = {"checkpointRepository": repository, "restrictedPropertiesSecret": "keys"}
    job = {"bundle": {"file": "/b"}, "processingElement": settings}
    return {
        "metadata": {
            "name": "first",
            "namespace": namespace,
            "uid": "uid",
            "deletionTimestamp": to_rfc3339(time.time() - seconds_ago),
        },
        "spec": {"job": "job"},
        "status": {"jobSpec": job},
    }


async def secret(kube: KubeClient, namespace: str, **texts: str) -> None:
    """Make the Secret that the jobs name."""
    data = {key.replace("_", "-"): b64encode(text.encode()).decode() for key, text in texts.items()}
    metadata = {"name": "keys", "namespace": namespace}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    await kube.create(SECRET.path(namespace), manifest)


async def marked(store: Store, namespace: str) -> set[tuple[str, str]]:
    """Return the savepoints that nobody needs."""
    entries = await asyncio.to_thread(store.keys, manifest.savepoints(namespace))
    return set(manifest.read(namespace, entries).removed)


async def test_it_is_marked_in_the_bucket(
    kube: KubeClient, namespace: str, object_store_address: str
) -> None:
    repositories = Repositories(kube, ExternalCalls(), SETTINGS)
    bucket = {"bucket": "copies", "endpoint": object_store_address, "secret": "keys"}
    item = deleted(namespace, {"s3": bucket})
    assert "the credentials of its repository are gone" in await repositories.remove(item)
    texts = {key.replace("-", "_"): text for key, text in S3_CREDENTIALS.items()}
    await secret(kube, namespace, **texts)
    assert await repositories.remove(item) == ""
    assert await marked(s3_store(object_store_address), namespace) == {("first", "uid")}
    assert await repositories.remove(item) == "", "it may be asked for again"


async def test_what_was_marked_last_is_collected_as_well(
    kube: KubeClient, namespace: str, object_store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though no other savepoint is deleted later."""
    monkeypatch.setattr(manifest, "GRACE_SECONDS", 6.0)
    monkeypatch.setattr(module, "LATER_SECONDS", 8.0)
    texts = {key.replace("-", "_"): text for key, text in S3_CREDENTIALS.items()}
    await secret(kube, namespace, **texts)
    bucket = {"bucket": "copies", "endpoint": object_store_address, "secret": "keys"}
    repositories, store = (
        Repositories(kube, ExternalCalls(), SETTINGS),
        s3_store(object_store_address),
    )
    assert await repositories.remove(deleted(namespace, {"s3": bucket})) == ""
    assert await marked(store, namespace) == {("first", "uid")}
    async with asyncio.timeout(30):
        while await marked(store, namespace):
            await asyncio.sleep(0.2)


async def test_it_is_marked_on_redis_once_that_answers(
    kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    await secret(kube, namespace, password=PASSWORD)
    port, repositories = free_port(), Repositories(kube, ExternalCalls(), SETTINGS)
    redis = {"service": "127.0.0.1", "port": port, "restrictedProperty": "password"}
    item = deleted(namespace, {"redis": redis})
    with pytest.raises(UnderWay):
        await repositories.remove(item)
    late = deleted(namespace, {"redis": redis}, PATIENCE_SECONDS + 1)
    assert "0 of 1 Redis servers" in await repositories.remove(late)
    with redis_server(tmp_path, "127.0.0.1", port, "--requirepass", PASSWORD):
        deadline = time.monotonic() + 30
        while True:
            try:
                assert await repositories.remove(item) == ""
                break
            except UnderWay:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.2)
        settings = RedisRepository.model_validate(redis)
        store = RedisStore(settings, namespace, {"password": PASSWORD})
        assert await marked(store, namespace) == {("first", "uid")}
        store.close()


async def test_without_a_repository_there_is_nothing_to_do(kube: KubeClient) -> None:
    repositories = Repositories(kube, ExternalCalls(), SETTINGS)
    assert await repositories.remove(deleted("ns", {})) == ""
    bucket = {"bucket": "copies", "endpoint": "http://localhost:1"}
    back = deleted("ns", {"s3": bucket})
    back["spec"]["rollsBackTo"] = "first"
    assert await repositories.remove(back) == "", "it has no copies"
    alone = deleted("ns", {"s3": bucket})
    alone["spec"]["repository"] = False
    assert await repositories.remove(alone) == ""
    never_begun = deleted("ns", {})
    never_begun["status"] = {}
    assert await repositories.remove(never_begun) == ""
    files = {"copies": {"path": "/copies", "volumeClaim": {"name": "others"}}}
    item = deleted("ns", files)
    assert "does not see the volume" in await repositories.remove(item)
    assert await repositories.remove(item, others_come=True) == "", "PEs see it"
