"""Transport security of a PE: the control port's certificate."""

import asyncio
import ssl
from pathlib import Path

from aiohttp import web
from cryptography import x509

from streamgraft_local import pki
from streamgraft_pe_runtime.transport import ControlTls


def write(folder: Path, signer: pki.Issued) -> None:
    """Put a new certificate where the Secret is mounted."""
    issued = pki.issue(signer, "pe", hosts=["localhost", "127.0.0.1"])
    issued.save(folder, "tls")


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
