"""A Job goes within a bounded time whatever is broken, and so does its namespace."""

import asyncio
import base64
import zipfile
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any

import pytest
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.kinds import CONFIG_MAP, SECRET
from streamgraft_common.resources import JOB
from streamgraft_operator.job import deletion

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]

_ENCRYPTED_FLAG = 0x1


async def _secret(world: World, **data: str) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"}}
    path = SECRET.path(world.namespace, "kafka")
    await world.client.apply(path, {**manifest, "data": encoded}, "test")


async def _bad_pem(world: World) -> None:
    await _secret(world, **{"ca.crt": "this is no certificate"})


async def _no_secret(world: World) -> None:
    """The Secret that the Job names was never there."""


async def _damaged_bundle(world: World) -> None:
    await world.upload(bundle(application(world.namespace))[:100])


async def _encrypted_bundle(world: World) -> None:
    await world.upload(encrypted(bundle(application(world.namespace))))


async def _no_bundle(world: World) -> None:
    await world.client.delete(CONFIG_MAP.path(world.namespace, "bundle"))


def encrypted(content: bytes) -> bytes:
    """Return a bundle whose files claim to be encrypted."""
    data = bytearray(content)
    data[6] |= _ENCRYPTED_FLAG
    data[content.index(b"PK\x01\x02") + 8] |= _ENCRYPTED_FLAG
    with zipfile.ZipFile(BytesIO(data)) as archive, pytest.raises(RuntimeError):
        archive.testzip()
    return bytes(data)


@pytest.mark.parametrize(
    "damage",
    [_bad_pem, _no_secret, _damaged_bundle, _encrypted_bundle, _no_bundle],
    ids=lambda damage: damage.__name__,
)
async def test_a_job_goes(
    world: World,
    player: HandPlayedPe,
    source_topic: str,
    damage: Callable[[World], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion, "KAFKA_PATIENCE_SECONDS", 3.0)
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.job_in("Healthy")
    await damage(world)
    if damage in (_bad_pem, _no_secret):
        security: dict[str, Any] = {"type": "TLS", "kafkaSecret": "kafka"}
        patch = {"spec": {"transportSecurity": security}}
        await world.client.patch(JOB.path(world.namespace, "job"), patch)
    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda job: job is None)


async def test_a_namespace_goes(
    world: World, player: HandPlayedPe, source_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "KAFKA_PATIENCE_SECONDS", 3.0)
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.job_in("Healthy")
    path = f"/api/v1/namespaces/{world.namespace}"
    await world.client.delete(path)

    async def gone() -> bool:
        await asyncio.sleep(0.2)
        return await world.client.find(path) is None

    await world.until(gone)
