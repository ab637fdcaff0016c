"""Browsers: a ticket that is good once becomes a session, and a session stands for a bearer token.

A browser can't keep a token safely, so it gets a cookie that scripts can't read and that no other
site can use; with it each request carries a word that only our own page knows. Everything behind
this middleware sees nothing but a bearer token (docs/decisions/0039-console.md).
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgraft_metrics_adapter.access.attributes import is_page
from streamgraft_metrics_adapter.status import ForbiddenError, StatusError, UnauthorizedError

COOKIE = "__Host-streamgraft"
"""The prefix makes browsers refuse it without TLS, and from other hosts."""
CSRF, TICKET = "x-streamgraft-csrf", "x-streamgraft-ticket"
SESSION_SECONDS, TICKET_SECONDS = 8 * 3600.0, 300.0
MOST, MOST_PER_USER = 1000, 50
"""Sessions that are kept, and as many tickets; the oldest goes for a new one."""
_PORT = re.compile(r":([0-9]{1,5})$")

Kept = TypeVar("Kept")


class ReplacedError(UnauthorizedError):
    """The page was signed in, until the browser was signed in anew in another tab."""

    reason = "SignInReplaced"


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
        self._tickets = _Secrets[str](TICKET_SECONDS, clock)
        self._sessions = _Secrets[Session](SESSION_SECONDS, clock)

    def ticket(self, user: str, token: str) -> str:
        """Return a ticket for a bearer token of a user: good once, for five minutes."""
        return self._tickets.keep(user, token)

    def redeem(self, ticket: str) -> str | None:
        """Return the token of a ticket, which is used up with that; None if it is not good."""
        token = self._tickets.find(ticket)
        self._tickets.forget(ticket)
        return token

    def begin(self, user: str, token: str) -> tuple[str, Session]:
        """Return the secret for the cookie of a new session, and the session."""
        session = Session(token, secrets.token_urlsafe(32))
        return self._sessions.keep(user, session), session

    def find(self, secret: str) -> Session | None:
        """Return a session that is not over."""
        return self._sessions.find(secret)

    def end(self, secret: str) -> None:
        """Sign a browser out."""
        self._sessions.forget(secret)


class _Secrets(Generic[Kept]):
    """What new secrets stand for, for a while; the oldest go for new ones.

    A user's own go first, so that none signs the others out. Memory has no secret in it by which
    somebody could sign in.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._kept: dict[bytes, tuple[float, str, Kept]] = {}

    def keep(self, user: str, value: Kept) -> str:
        """Return a new secret of a user."""
        own = [digest for digest, (_, owner, _) in self._kept.items() if owner == user]
        if len(own) >= MOST_PER_USER:
            del self._kept[own[0]]
        elif len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        secret = secrets.token_urlsafe(32)
        self._kept[_digest(secret)] = self._clock() + self._seconds, user, value
        return secret

    def find(self, secret: str) -> Kept | None:
        """Return what a secret stands for, None if it is not good any more."""
        found = self._kept.get(_digest(secret))
        return found[2] if found and found[0] > self._clock() else None

    def forget(self, secret: str) -> None:
        """Let a secret stand for nothing."""
        self._kept.pop(_digest(secret), None)


class SessionsAsTokens:
    """ASGI middleware: replaces a ticket or a session by its bearer token."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a Status."""
        # Files are for everybody: a browser that opens or reloads the page sends no word of it.
        if scope["type"] != "http" or is_page(scope["path"]):
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
        secret = cookie(headers)
        session = self._sessions.find(secret) if secret else None
        if session is None:
            return None
        if not (sent := headers.get(CSRF)):
            raise ForbiddenError(f"the header {CSRF} is missing: this request is not our page's")
        # Compared as bytes: headers may hold anything.
        if not hmac.compare_digest(sent.encode("latin-1"), session.csrf.encode()):
            raise ReplacedError("another sign-in in this browser replaced this one: sign in again")
        return session.token


def cookie_name(host: str) -> str:
    """Return the name of our cookie for a header Host.

    Browsers send a host's cookies to all of its ports, where other consoles may be.
    """
    port = _PORT.search(host)
    return f"{COOKIE}-{port[1]}" if port else COOKIE


def cookie(headers: Mapping[str, str]) -> str | None:
    """Return the secret in our cookie, from a request's headers."""
    ours = cookie_name(headers.get("host", ""))
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == ours and value), None)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
