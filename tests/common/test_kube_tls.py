"""Which certificates of API servers are good."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from streamgraft_common.kube import KubeClient, KubeConfig


def without_identifiers(folder: Path) -> tuple[Path, Path, str]:
    """Return files of a server's certificate and key, and their authority's certificate as text.

    As those of EKS, they name no keys by identifiers.
    """
    ours, theirs = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("ca", "api")
    )
    now = datetime.now(UTC)

    def signed(
        name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> bytes:
        builder = x509.CertificateBuilder(issuer, name, key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1))
        builder = builder.not_valid_after(now + timedelta(hours=1))
        certificate = builder.add_extension(extension, critical=True).sign(ours, hashes.SHA256())
        return certificate.public_bytes(Encoding.PEM)

    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate, key = folder / "server.crt", folder / "server.key"
    certificate.write_bytes(signed(subject, theirs, address))
    key.write_bytes(theirs.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    authority = signed(issuer, ours, x509.BasicConstraints(ca=True, path_length=None))
    return certificate, key, authority.decode()


async def test_an_authority_without_key_identifiers_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python 3.13 on the defaults refuse it: they are played here."""
    certificate, key, authority = without_identifiers(tmp_path)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(certificate, key)
    default = ssl.create_default_context

    def strict(*, cadata: str) -> ssl.SSLContext:
        context = default(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"here": True})

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=served).start()
    monkeypatch.setattr(ssl, "create_default_context", strict)
    server = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with KubeClient(KubeConfig(server=server, ca_data=authority)) as client:
            assert await client.get("/") == {"here": True}
    finally:
        await runner.cleanup()
