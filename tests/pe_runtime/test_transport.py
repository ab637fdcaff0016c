"""Transport security of a PE: options of the Kafka clients, and the control port's certificate."""

import asyncio
import ssl
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from streamgraft_local import pki
from streamgraft_pe_runtime.transport import ControlTls, consumer_options, spark_options


def write(folder: Path, signer: pki.Issued) -> None:
    """Put a new certificate where the Secret is mounted."""
    issued = pki.issue(signer, "pe", hosts=["localhost", "127.0.0.1"])
    issued.save(folder, "tls")


def test_without_tls_nothing_is_set() -> None:
    assert spark_options(False) == consumer_options(False) == {}


def test_brokers_of_a_known_authority_and_a_client_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of any form (here PKCS 1) reaches Java in the form that it reads."""
    monkeypatch.setenv("STREAMGRAFT_KAFKA_TLS", str(tmp_path))
    (tmp_path / "ca.crt").write_text("authority")
    assert spark_options(True) == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(tmp_path / "ca.crt"),
    }
    assert consumer_options(True) == {
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca.crt"),
    }
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (tmp_path / "tls.key").write_bytes(key)
    (tmp_path / "tls.crt").write_text("certificate")
    options = spark_options(True)
    assert options["kafka.ssl.keystore.certificate.chain"] == "certificate"
    assert options["kafka.ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert consumer_options(True)["ssl.key.location"] == str(tmp_path / "tls.key")


def test_brokers_checked_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMGRAFT_KAFKA_TLS", raising=False)
    assert spark_options(True) == {"kafka.security.protocol": "SSL"}


async def test_new_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    signer = pki.authority("ca")
    signer.save(tmp_path, "ca")
    write(tmp_path, signer)
    tls = ControlTls.from_environment({"STREAMGRAFT_CONTROL_TLS": str(tmp_path)})
    assert tls is not None

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    application = web.Application()
    application.router.add_get("/", hello)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.context)
    await site.start()
    port = runner.addresses[0][1]

    async def serial() -> int:
        held = await asyncio.to_thread(
            ssl.get_server_certificate, ("127.0.0.1", port), ca_certs=str(tmp_path / "ca.crt")
        )
        return x509.load_pem_x509_certificate(held.encode()).serial_number

    first = await serial()
    assert await serial() == first
    write(tmp_path, signer)
    tls.reload()
    assert await serial() != first
    await runner.cleanup()


def test_without_a_certificate_the_port_is_plain() -> None:
    assert ControlTls.from_environment({}) is None
