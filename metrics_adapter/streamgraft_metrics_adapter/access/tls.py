"""TLS of the server: client certificates are asked for, checked, and handed to the application.

uvicorn does not pass on the peer's certificate, so a subclass of its protocol puts it into the
state of every request of the connection.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from cryptography import x509
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.access.connections import Connections

PEER = "peer_certificate"
"""Key in a request's state: the verified client certificate (DER), or None."""


HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 15.0
"""From the start of a connection or of a request until the request's head is complete."""


class _WholeAnswers:
    """A transport that sends an answer's head together with its body.

    uvicorn writes them one after the other; each would be a TLS record and a packet of its own,
    work for both sides. What nothing follows goes out in the loop's next round.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._kept = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data with what was kept, or keep it for a moment."""
        if self._kept:
            self._transport.write(self._kept + data)
            self._kept = b""
        else:
            self._kept = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Close the connection once all was sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._kept:
            self._transport.write(self._kept)
            self._kept = b""


class PeerCertificateProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose requests know the certificate that the client proved to own."""

    others: Connections
    """All connections but those of the front proxy; see `protocol`."""
    is_front_proxy: Callable[[bytes | None], bool]

    _head_bytes: int
    _head_timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take note of the certificate; None if the client sent none."""
        super().connection_made(cast(asyncio.Transport, _WholeAnswers(transport, self.loop)))
        session: Any = transport.get_extra_info("ssl_object")
        peer = cast("bytes | None", session.getpeercert(binary_form=True)) if session else None
        self.app_state = {**self.app_state, PEER: peer}
        self._address = self.client[0] if self.client else ""
        if not type(self).is_front_proxy(peer):
            self.others.add(self._address, self)
        self._expect_head()

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def close(self) -> None:
        """Close the connection, which is idle."""
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Bound the time and the size of a request's head, however many pieces it comes in."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self.is_busy:
            self._head_timer.cancel()
            self._head_bytes = 0
        elif self._head_bytes > HEAD_BYTES:
            self.transport.close()
        elif self._head_timer.cancelled():
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._head_timer.cancel()
        self.others.remove(self._address, self)
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)


def protocol(
    others: Connections, is_front_proxy: Callable[[bytes | None], bool]
) -> type[PeerCertificateProtocol]:
    """Return the protocol of a server that keeps account of its connections in `others`, but for
    those whose client certificate (DER) is the front proxy's."""

    class Protocol(PeerCertificateProtocol):
        pass

    Protocol.others = others
    Protocol.is_front_proxy = staticmethod(is_front_proxy)
    return Protocol


class ServerContext:
    """The SSLContext to listen with: authorities and the serving certificate may change meanwhile.

    Each handshake goes on with the context of the present certificate. One context could not do for
    all: it keeps a certificate per type of key, so one of another type would not replace the last.
    OpenSSL can only add authorities; one that was withdrawn is refused by the authenticator, which
    checks the issuer of every certificate against the present list.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._loaded: tuple[int, int] | None = None
        self._authorities: set[str] = set()
        self.context = _context()
        # OpenSSL calls it in every handshake, also of clients that name no server.
        self.context.sni_callback = self._go_on
        self.reload_certificate()

    def reload_certificate(self) -> None:
        """Load the serving certificate if its files changed.

        Raises OSError or SSLError if they don't belong together, and goes on with the last one.
        """
        certificate, key = self._files
        stamp = certificate.stat().st_mtime_ns, key.stat().st_mtime_ns
        if stamp == self._loaded:
            return
        fresh = _context()
        fresh.load_cert_chain(certificate, key)
        for bundle in self._authorities:
            fresh.load_verify_locations(cadata=bundle)
        self._present, self._loaded = fresh, stamp
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        telemetry.CERTIFICATE_EXPIRY.set(found.not_valid_after_utc.timestamp())

    def trust(self, bundles: Iterable[str]) -> None:
        """Accept client certificates of these authorities (PEM) from the next handshake on."""
        for bundle in bundles:
            if bundle and bundle not in self._authorities:
                self._present.load_verify_locations(cadata=bundle)
                self._authorities.add(bundle)

    def _go_on(self, session: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        session.context = self._present


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Health probes come without a certificate.
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
