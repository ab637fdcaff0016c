"""A schema registry of tests."""

import json
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import serving


class FakeRegistry(ThreadingHTTPServer):
    """The two calls of a schema registry's REST contract."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas: dict[int, str] = {}
        self.subjects: dict[str, list[int]] = {}
        self.calls = 0
        self.broken = False
        self.wanted: str | None = None
        """The header Authorization without which nobody gets an answer."""
        self.shown: list[str | None] = []
        self.leads_to = ""
        """URL that all questions are redirected to."""
        self.proxied = b""
        """What a proxy answers while the registry is not there."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_GET(self) -> None:
        if not self._admitted():
            return
        if self.server.leads_to:
            self.send_response(302)
            self.send_header("Location", self.server.leads_to + self.path)
            self.end_headers()
            return
        if self.server.proxied:
            self._answer(404, self.server.proxied)
            return
        number = int(self.path.rpartition("/")[2])
        schema = self.server.schemas.get(number)
        if schema is None or self.server.broken:
            self._answer(500 if self.server.broken else 404, {"error_code": 40403})
        else:
            self._answer(200, {"schema": schema})

    def do_POST(self) -> None:
        if not self._admitted():
            return
        _, subjects, subject, versions = self.path.split("/")
        assert (subjects, versions) == ("subjects", "versions")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = {text: number for number, text in self.server.schemas.items()}
        number = known.get(body["schema"], len(known) + 1)
        self.server.schemas[number] = body["schema"]
        self.server.subjects.setdefault(subject, []).append(number)
        self._answer(200, {"id": number})

    def _admitted(self) -> bool:
        shown = self.headers["Authorization"]
        self.server.shown.append(shown)
        if self.server.wanted in (None, shown):
            return True
        self._answer(401, {"error_code": 40101})
        return False

    def _answer(self, code: int, body: Any) -> None:
        self.server.calls += 1
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def registry() -> AbstractContextManager[FakeRegistry]:
    """Serve a registry."""
    return serving(FakeRegistry())
