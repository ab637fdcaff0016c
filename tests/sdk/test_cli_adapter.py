"""How commands reach a cluster's metrics adapter, whose certificate is not the API server's."""

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding

from streamgraft.cli._adapter import adapter, reached
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common.kube import KubeClient, KubeConfig, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_local.pki import Issued, authority, issue

PLACE = {"name": "adapter", "namespace": "system"}
CLUSTER = KubeConfig(server="https://api:6443", token="t", proxy="http://proxy:3128")


def pem(issued: Issued) -> str:
    """Return a certificate as text."""
    return issued.certificate.public_bytes(Encoding.PEM).decode()


def signals(signer: Issued) -> Object:
    """Return an APIService."""
    bundle = base64.b64encode(pem(signer).encode()).decode()
    return {"spec": {"service": PLACE, "caBundle": bundle}}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[str, Issued]]:
    """Return the URL of a server with a certificate for the Service's name, and who signed it."""
    signer = authority("adapter")
    issue(signer, "adapter", hosts=["adapter.system.svc"]).save(tmp_path, "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"by": request.headers["Authorization"]})

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}", signer
    await runner.cleanup()


async def test_a_forwarded_port_is_known_by_the_services_certificate(
    served: tuple[str, Issued],
) -> None:
    url, signer = served
    async with KubeClient(reached(CLUSTER, url, signals(signer))) as client:
        assert await client.get("/") == {"by": "Bearer t"}


async def test_another_authority_is_refused(served: tuple[str, Issued]) -> None:
    """And the message says whose certificate it is about."""
    url, _ = served
    config = reached(CLUSTER, url, signals(authority("another")))
    async with KubeClient(config, peer=f"the metrics adapter at {url}") as client:
        with pytest.raises(Unreachable, match=f"no answer from the metrics adapter at {url}"):
            await client.get("/")


@pytest.mark.parametrize("service", [None, {"spec": {}}, {"spec": {"service": None}}])
def test_without_the_apiservice_the_adapter_is_a_part_of_the_cluster(
    service: Object | None,
) -> None:
    found = reached(CLUSTER, "http://127.0.0.1:1", service)
    assert (found.server, found.token, found.tls_server_name) == ("http://127.0.0.1:1", "t", None)


async def test_a_cluster_that_was_named_is_not_the_embedded_one(
    served: tuple[str, Issued], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its adapter's address has to be said, whatever runs here."""
    monkeypatch.setattr("streamgraft.cli._adapter.running_adapter", lambda: "https://127.0.0.1:1")
    url, signer = served
    async with KubeClient(reached(CLUSTER, url, signals(signer))) as client:
        with pytest.raises(CommandError, match="--adapter https://"):
            async with adapter(Target(context="prod"), Cluster(client, "default"), None):
                pass
