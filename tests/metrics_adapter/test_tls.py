"""The live TLS context: what changes is used from the next handshake on, open connections go on."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgraft_local import pki
from streamgraft_metrics_adapter.access.connections import Connections
from streamgraft_metrics_adapter.access.tls import PEER, ServerContext, protocol
from streamgraft_metrics_adapter.settings import parse

HOST = "localhost"
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass
class Server:
    """A server on a free port that answers with the name of the client's certificate, or `-`."""

    folder: Path
    context: ServerContext
    port: int = 0
    families: set[socket.AddressFamily] = field(default_factory=set)

    def renew(self, authority: pki.Issued) -> pki.Issued:
        """Replace the files of the serving certificate, as a Secret's volume would."""
        (self.folder / "tls.key").unlink(missing_ok=True)
        fresh = pki.issue(authority, HOST, hosts=[HOST])
        fresh.save(self.folder, "tls")
        return fresh


async def _who(scope: Scope, receive: Receive, send: Send) -> None:
    peer = scope["state"][PEER]
    name = x509.load_der_x509_certificate(peer).subject.rfc4514_string() if peer else "-"
    headers = [(b"content-length", str(len(name)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": name.encode()})


@asynccontextmanager
async def serving(
    folder: Path, authority: pki.Issued, app: ASGIApp = _who, host: str = "127.0.0.1"
) -> AsyncIterator[Server]:
    """Serve with the adapter's own protocol and context."""
    pki.issue(authority, HOST, hosts=[HOST]).save(folder, "tls")
    context = ServerContext(folder / "tls.crt", folder / "tls.key")
    running = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=0,
            http=protocol(Connections(), lambda peer: False),
            lifespan="off",
            log_config=None,
            ssl_context_factory=lambda config, default: context.context,
        )
    )
    task = asyncio.create_task(running.serve())
    while not running.started:
        await asyncio.sleep(0.01)
    sockets = running.servers[0].sockets
    try:
        yield Server(folder, context, sockets[0].getsockname()[1], {s.family for s in sockets})
    finally:
        running.should_exit = True
        await task


class Client:
    """One connection, perhaps with a client certificate."""

    def __init__(self, server: Server, trusted: pki.Issued, shown: Path | None = None) -> None:
        self._port = server.port
        self._context = ssl.create_default_context(cadata=pem(trusted))
        if shown is not None:
            self._context.load_cert_chain(f"{shown}.crt", f"{shown}.key")

    async def __aenter__(self) -> "Client":
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._context, server_hostname=HOST
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._writer.close()

    @property
    def served(self) -> bytes:
        """Return the server's certificate (DER)."""
        session = self._writer.get_extra_info("ssl_object")
        return bytes(session.getpeercert(binary_form=True))

    async def start(self) -> bytes:
        """Ask; return the head of the answer."""
        self._writer.write(REQUEST)
        return await self._reader.readuntil(b"\r\n\r\n")

    async def chunk(self) -> bytes:
        """Return the next chunk of an answer without a length."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def name(self) -> str:
        """Return what the server answers. Raises ConnectionError or SSLError if it refuses."""
        head = (await self.start()).lower()
        length = int(head.partition(b"content-length:")[2].split()[0])
        return (await self._reader.readexactly(length)).decode()


def pem(issued: pki.Issued) -> str:
    """Return a certificate as text."""
    return issued.certificate.public_bytes(Encoding.PEM).decode()


def der(issued: pki.Issued) -> bytes:
    """Return a certificate as bytes."""
    return issued.certificate.public_bytes(Encoding.DER)


async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    old, new = pki.authority("old"), pki.authority("new")
    async with serving(tmp_path, old) as server, Client(server, old) as open_before:
        first = open_before.served
        renewed = server.renew(new)
        server.context.reload_certificate()
        async with Client(server, new) as after:
            assert after.served == der(renewed) != first
            assert await after.name() == "-"
        assert await open_before.name() == "-"
        with pytest.raises(ssl.SSLCertVerificationError):
            async with Client(server, old):
                pass


def save(folder: Path, authority: pki.Issued, key_type: str) -> bytes:
    """Write a serving certificate with a key of this type; return it (DER)."""
    key = (
        ec.generate_private_key(ec.SECP256R1())
        if key_type == "EC"
        else rsa.generate_private_key(65537, 2048)
    )
    like = pki.issue(authority, HOST, hosts=[HOST]).certificate
    builder = x509.CertificateBuilder(
        like.issuer, like.subject, key.public_key(), x509.random_serial_number()
    )
    builder = builder.not_valid_before(like.not_valid_before_utc)
    builder = builder.not_valid_after(like.not_valid_after_utc)
    names = like.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    certificate = builder.add_extension(names, critical=False).sign(authority.key, hashes.SHA256())
    (folder / "tls.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "tls.key").unlink(missing_ok=True)
    (folder / "tls.key").write_bytes(key.private_bytes(*form))
    return certificate.public_bytes(Encoding.DER)


def shown(server: Server, trusted: pki.Issued, newest: ssl.TLSVersion, *, named: bool) -> bytes:
    """Return the certificate (DER) that a client gets, who may not say which host it wants."""
    context = ssl.create_default_context(cadata=pem(trusted))
    context.maximum_version = newest
    context.check_hostname = named
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=HOST if named else None) as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""


@pytest.mark.parametrize("before", ["EC", "RSA"])
@pytest.mark.parametrize("after", ["EC", "RSA"])
async def test_a_key_of_any_type_replaces_one_of_any(
    tmp_path: Path, before: str, after: str
) -> None:
    """OpenSSL keeps one certificate per type, and clients take the one that they like best."""
    authority, clients = pki.authority("one"), pki.authority("clients")
    pki.issue(clients, "jane").save(tmp_path, "jane")
    async with serving(tmp_path, authority) as server:
        server.context.trust([pem(clients)])
        for key_type in (before, after):
            fresh = save(tmp_path, authority, key_type)
            server.context.reload_certificate()
            for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                for named in (True, False):
                    got = await asyncio.to_thread(shown, server, authority, newest, named=named)
                    assert got == fresh
        async with Client(server, authority, tmp_path / "jane") as known:
            assert await known.name() == "CN=jane"


async def test_half_a_renewal_leaves_the_certificate_that_was(tmp_path: Path) -> None:
    """The two files are replaced one after the other."""
    authority = pki.authority("one")
    async with serving(tmp_path, authority) as server:
        key = (tmp_path / "tls.key").read_bytes()
        server.renew(authority)
        fresh = (tmp_path / "tls.key").read_bytes()
        (tmp_path / "tls.key").write_bytes(key)
        with pytest.raises(ssl.SSLError):
            server.context.reload_certificate()
        async with Client(server, authority) as between:
            before = between.served
            assert await between.name() == "-"
        (tmp_path / "tls.key").write_bytes(fresh)
        server.context.reload_certificate()
        async with Client(server, authority) as after:
            assert after.served != before


async def test_further_client_authorities_count_at_once(tmp_path: Path) -> None:
    authority, clients = pki.authority("servers"), pki.authority("clients")
    pki.issue(clients, "jane").save(tmp_path, "jane")
    async with serving(tmp_path, authority) as server:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            async with Client(server, authority, tmp_path / "jane") as unknown:
                await unknown.name()
        server.context.trust([pem(clients)])
        async with Client(server, authority, tmp_path / "jane") as known:
            assert await known.name() == "CN=jane"


def pieces(server: Server, trusted: pki.Issued, count: int) -> list[bytes]:
    """Ask; return the first records of TLS that come: a read returns one at most."""
    context = ssl.create_default_context(cadata=pem(trusted))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as connection,
    ):
        connection.sendall(REQUEST)
        return [connection.recv(65536) for _ in range(count)]


async def test_a_short_answer_is_one_record(tmp_path: Path) -> None:
    authority = pki.authority("one")
    async with serving(tmp_path, authority) as server:
        (whole,) = await asyncio.to_thread(pieces, server, authority, 1)
    assert whole.startswith(b"HTTP/1.1 200")
    assert whole.endswith(b"\r\n\r\n-")


async def test_what_is_sent_of_an_answer_does_not_wait_for_the_rest(tmp_path: Path) -> None:
    """The stream of a live view: its head comes at once, and each event when it happens."""
    authority, more = pki.authority("one"), asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for text in (b"first", b"second"):
            await more.wait()
            more.clear()
            await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with serving(tmp_path, authority, stream) as server, Client(server, authority) as client:
        assert b"200 OK" in await client.start()
        for text in (b"first", b"second"):
            more.set()
            assert await client.chunk() == text


async def test_all_addresses_are_listened_at_by_default(tmp_path: Path) -> None:
    """Of IPv4, which `kubectl port-forward` asks, and of IPv6, where pods have no others."""
    host = parse(("--prometheus-url=http://p", "--tls-cert=c", "--tls-key=k")).bind
    async with serving(tmp_path, pki.authority("one"), host=host) as server:
        assert server.families - {socket.AF_INET6} == {socket.AF_INET}
        assert not _ipv6() or socket.AF_INET6 in server.families


def _ipv6() -> bool:
    try:
        socket.create_server(("::", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
