"""A schema registry of tests."""

import json
import ssl
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.serving import serving


class FakeRegistry(ThreadingHTTPServer):
    """The two calls of a schema registry's REST contract, where one has to refuse or to break.

    A real one is in apicurio.py.

    With a folder that has `tls.crt` and `tls.key` it speaks https.
    """

    def __init__(self, tls: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls / "tls.crt", tls / "tls.key")
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"
        self.wanted = ""
        """The header Authorization that it asks for; empty: none."""
        self.forbidden: Any = None
        """What it answers to those who have no right to anything."""
        self.moved = ""
        """Where it redirects to."""
        self.shown: list[str | None] = []
        """The headers Authorization of all calls."""
        self.schemas: dict[int, str] = {}
        self.subjects: dict[str, list[int]] = {}
        self.calls = 0
        self.broken = False
        self.proxied = b""
        """What a proxy answers while the registry is not there."""
        self.proxied_code = 404

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_GET(self) -> None:
        if self._turned_away():
            return
        if self.server.proxied:
            self._answer(self.server.proxied_code, self.server.proxied)
            return
        number = int(self.path.rpartition("/")[2])
        schema = self.server.schemas.get(number)
        if schema is None or self.server.broken:
            self._answer(500 if self.server.broken else 404, {"error_code": 40403})
        else:
            self._answer(200, {"schema": schema})

    def do_POST(self) -> None:
        _, subjects, subject, versions = self.path.split("/")
        assert (subjects, versions) == ("subjects", "versions")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._turned_away():
            return
        known = {text: number for number, text in self.server.schemas.items()}
        number = known.get(body["schema"], len(known) + 1)
        self.server.schemas[number] = body["schema"]
        self.server.subjects.setdefault(subject, []).append(number)
        self._answer(200, {"id": number})

    def _turned_away(self) -> bool:
        """Return whether the client gets no answer here."""
        shown = self.headers["Authorization"]
        self.server.shown.append(shown)
        if self.server.moved and not self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", self.server.moved + self.path)
            self.end_headers()
        elif self.server.wanted and shown != self.server.wanted:
            self._answer(401, {"error_code": 401, "message": f"Unauthorized: {shown}"})
        elif self.server.forbidden is not None:
            self._answer(403, self.server.forbidden)
        else:
            return False
        return True

    def _answer(self, code: int, body: Any) -> None:
        self.server.calls += 1
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def registry(tls: Path | None = None) -> AbstractContextManager[FakeRegistry]:
    """Serve a registry."""
    return serving(FakeRegistry(tls))
