"""Transport security from end to end: a broker with TLS only, a real PE, Prometheus by https."""

import asyncio
import base64
import io
import json
import ssl
import time
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography import x509
from tests.e2e.tls_broker import TlsBroker, tls_broker

from streamgraft_common import names
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

RESULT_SECONDS = 120
MODULE = """
from streamgraft import Application

application = Application("echo")


@application.operator(inputs="read")
def plain(frame):
    return frame
"""
SCHEMA = {
    "type": "struct",
    "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}],
}
ADL = {
    "format": 1,
    "name": "echo",
    "builtBy": "0.1.0",
    "module": "echo_application",
    "application": "application",
    "operators": [
        {"name": "read", "kind": "kafka-source", "outputs": ["read"], "kafka": {"topic": "in"}},
        {
            "name": "plain",
            "kind": "function",
            "function": "plain",
            "inputs": ["read"],
            "outputs": ["plain"],
        },
        {"name": "write", "kind": "kafka-sink", "inputs": ["plain"], "kafka": {"topic": "out"}},
    ],
    "streams": [
        {"name": "read", "producer": "read", "schema": SCHEMA},
        {"name": "plain", "producer": "plain", "schema": SCHEMA},
    ],
}


@pytest.fixture
def broker(cluster: Cluster, tmp_path: Path) -> Iterator[TlsBroker]:
    """A broker that the job's secret is for."""
    with tls_broker(cluster, tmp_path) as running:
        yield running


def encoded(data: dict[str, bytes]) -> dict[str, str]:
    """Return binary data as objects carry it."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def bundle() -> bytes:
    """Return the application."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("adl.json", json.dumps(ADL))
        archive.writestr("echo_application.py", MODULE)
    return buffer.getvalue()


async def submit(kube: KubeClient, namespace: str, broker: TlsBroker) -> None:
    """Create bundle, secret and job."""
    core = f"/api/v1/namespaces/{namespace}"
    content = {"metadata": {"name": "bundle"}, "binaryData": encoded({"bundle.zip": bundle()})}
    await kube.create(f"{core}/configmaps", content)
    secret = {"metadata": {"name": "brokers"}, "data": encoded(broker.secret)}
    await kube.create(f"{core}/secrets", secret)
    spec = {
        "bundle": {"configMap": {"name": "bundle"}},
        "bootstrapServers": broker.address,
        "transportSecurity": {"type": "TLS", "kafkaSecret": "brokers"},
    }
    await kube.create(JOB.path(namespace), JOB.manifest("echo", namespace, spec))


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Return the first answer that is true."""
    async with asyncio.timeout(RESULT_SECONDS):
        while not (found := await look()):
            await asyncio.sleep(0.2)
    return found


def echoed(broker: TlsBroker, count: int) -> set[int]:
    """Return the numbers of the first records of the sink's topic."""
    consumer = Consumer(
        {**broker.client(), "group.id": "test", "auto.offset.reset": "earliest"}
        | {"topic.metadata.refresh.interval.ms": "500"}
    )
    consumer.subscribe(["out"])
    deadline = time.monotonic() + RESULT_SECONDS
    seen: list[int] = []
    try:
        while len(seen) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                seen.append(json.loads(message.value() or b"")["n"])
    finally:
        consumer.close()
    return set(seen)


async def scraped(cluster: Cluster, namespace: str) -> bool:
    """Return whether Prometheus reads the PE's metrics."""
    query = {"query": f'streamgraft_pe_input_rows_total{{namespace="{namespace}"}}'}
    address = f"{cluster.prometheus_url}/api/v1/query"
    async with aiohttp.ClientSession() as session, session.get(address, params=query) as answer:
        found = (await answer.json())["data"]["result"]
    return bool(found) and float(found[0]["value"][1]) > 0


def served(address: str) -> int:
    """Return the serial number of the certificate at a control port."""
    held = ssl.get_server_certificate((address, names.CONTROL_PORT))
    return x509.load_pem_x509_certificate(held.encode()).serial_number


async def test_job_with_transport_security(
    cluster: Cluster, kube: KubeClient, namespace: str, broker: TlsBroker
) -> None:
    """Records go through; the control port is scraped by https; a renewal restarts nothing."""
    admin = AdminClient({**broker.client()})
    admin.create_topics([NewTopic("in", 1, 1)])["in"].result(30)
    producer = Producer(broker.client())
    for number in range(10):
        producer.produce("in", json.dumps({"n": number}).encode())
    assert producer.flush(30) == 0
    await submit(kube, namespace, broker)
    try:
        await until(lambda: healthy(kube, namespace))
        assert await asyncio.to_thread(echoed, broker, 10) == set(range(10))
        await until(lambda: scraped(cluster, namespace))
        await renewed(kube, namespace)
    finally:
        await kube.delete(JOB.path(namespace, "echo"))
    await until(lambda: gone(kube, namespace))


async def renewed(kube: KubeClient, namespace: str) -> None:
    """Ask for another validity: the running PE must serve the new certificate."""
    path = f"/api/v1/namespaces/{namespace}/pods/echo-0-1"
    pod = await kube.get(path)
    secret = f"/api/v1/namespaces/{namespace}/secrets/echo-tls"
    before = serial(await kube.get(secret))

    async def serves() -> int:
        return await asyncio.to_thread(served, pod["status"]["podIP"])

    assert await serves() == before
    validity = {"spec": {"transportSecurity": {"certificateValidityDays": 7}}}
    await kube.patch(JOB.path(namespace, "echo"), validity)

    async def replaced() -> bool:
        return await serves() == serial(await kube.get(secret)) != before

    await until(replaced)
    assert (await kube.get(path))["metadata"]["uid"] == pod["metadata"]["uid"]


def serial(secret: Object) -> int:
    """Return the serial number of the certificate in a Secret."""
    held = base64.b64decode(secret["data"]["tls.crt"])
    return x509.load_pem_x509_certificate(held).serial_number


async def healthy(kube: KubeClient, namespace: str) -> bool:
    """Return whether the job runs; fail with what is wrong if it can't be accepted."""
    status = (await kube.get(JOB.path(namespace, "echo"))).get("status", {})
    assert status.get("phase") != "Failed", status
    return bool(status.get("phase") == "Healthy")


async def gone(kube: KubeClient, namespace: str) -> bool:
    """Return whether no job is left."""
    return not (await kube.get(JOB.path(namespace)))["items"]
