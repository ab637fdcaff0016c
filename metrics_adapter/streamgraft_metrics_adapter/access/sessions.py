"""Browsers: a ticket that is good once becomes a session, and a session stands for a bearer token.

A browser can't keep a token safely, so it gets a cookie that scripts can't read and that no other
site can use; with it each request carries a word that only our own page knows. Everything behind
this middleware sees nothing but a bearer token (docs/decisions/0039-console.md).
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgraft_metrics_adapter.status import ForbiddenError, StatusError, UnauthorizedError

COOKIE = "__Host-streamgraft"
"""The prefix makes browsers refuse it without TLS, and from other hosts."""
CSRF, TICKET = "x-streamgraft-csrf", "x-streamgraft-ticket"
SESSION_SECONDS, TICKET_SECONDS = 8 * 3600.0, 300.0
_MOST = 1000

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Session:
    """A browser that is signed in."""

    token: str
    """The bearer token that it stands for."""
    csrf: str
    """What the page has to send along."""


class Sessions:
    """Tickets and sessions, in memory: a restart signs everybody out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[bytes, tuple[float, str]] = {}
        self._sessions: dict[bytes, tuple[float, Session]] = {}

    def ticket(self, token: str) -> str:
        """Return a ticket for a bearer token: good once, for five minutes."""
        secret = secrets.token_urlsafe(32)
        _keep(self._tickets, secret, (self._clock() + TICKET_SECONDS, token))
        return secret

    def redeem(self, ticket: str) -> str | None:
        """Return the token of a ticket, which is used up with that; None if it is not good."""
        until, token = self._tickets.pop(_digest(ticket), (0.0, ""))
        return token if until > self._clock() else None

    def begin(self, token: str) -> tuple[str, Session]:
        """Return the secret for the cookie of a new session, and the session."""
        secret = secrets.token_urlsafe(32)
        session = Session(token, secrets.token_urlsafe(32))
        _keep(self._sessions, secret, (self._clock() + SESSION_SECONDS, session))
        return secret, session

    def find(self, secret: str) -> Session | None:
        """Return a session that is not over."""
        until, session = self._sessions.get(_digest(secret), (0.0, None))
        return session if until > self._clock() else None

    def end(self, secret: str) -> None:
        """Sign a browser out."""
        self._sessions.pop(_digest(secret), None)


class SessionsAsTokens:
    """ASGI middleware: replaces a ticket or a session by its bearer token."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a Status."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            token = None if "authorization" in headers else self._token(headers)
        except StatusError as error:
            await JSONResponse(error.to_wire(), error.code)(scope, receive, send)
            return
        if token is not None:
            added = (b"authorization", f"Bearer {token}".encode("latin-1"))
            scope = {**scope, "headers": [*scope["headers"], added]}
        await self._app(scope, receive, send)

    def _token(self, headers: dict[str, str]) -> str | None:
        if ticket := headers.get(TICKET):
            if token := self._sessions.redeem(ticket):
                return token
            raise UnauthorizedError("this ticket was used before, or is too old: get another one")
        secret = cookie(headers.get("cookie", ""))
        session = self._sessions.find(secret) if secret else None
        if session is None:
            return None
        # Compared as bytes: headers may hold anything.
        sent = headers.get(CSRF, "").encode("latin-1")
        if not hmac.compare_digest(sent, session.csrf.encode()):
            raise ForbiddenError(f"the header {CSRF} is missing: this request is not our page's")
        return session.token


def cookie(header: str) -> str | None:
    """Return our secret of a header Cookie."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return next((value for name, _, value in pairs if name == COOKIE and value), None)


def _keep(kept: dict[bytes, Kept], secret: str, value: Kept) -> None:
    """Remember; memory has no secret in it by which somebody could sign in, and is bounded."""
    if len(kept) >= _MOST:
        del kept[next(iter(kept))]
    kept[_digest(secret)] = value


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
