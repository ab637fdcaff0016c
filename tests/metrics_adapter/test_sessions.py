"""Tickets and sessions of browsers, and what the middleware makes of them."""

from typing import Any

from starlette.types import Message, Receive, Scope, Send

from streamgraft_metrics_adapter.access import sessions as module
from streamgraft_metrics_adapter.access.attributes import is_callers_own, is_page
from streamgraft_metrics_adapter.access.sessions import (
    COOKIE,
    SESSION_SECONDS,
    TICKET_SECONDS,
    Sessions,
    SessionsAsTokens,
    cookie,
)


class Clock:
    """A time that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return it."""
        return self.now


def test_a_ticket_is_good_once_and_for_a_while() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    first, second = sessions.ticket("token"), sessions.ticket("token")
    assert sessions.redeem(first) == "token"
    assert sessions.redeem(first) is None
    clock.now = TICKET_SECONDS
    assert sessions.redeem(second) is None


def test_a_session_ends_by_itself_and_by_hand() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    secret, session = sessions.begin("token")
    assert sessions.find(secret) == session
    assert sessions.find(secret + "x") is None
    clock.now = SESSION_SECONDS
    assert sessions.find(secret) is None
    other, _ = sessions.begin("token")
    sessions.end(other)
    assert sessions.find(other) is None


def test_there_are_never_too_many() -> None:
    sessions = Sessions()
    first, _ = sessions.begin("token")
    for _ in range(module._MOST):
        last, _ = sessions.begin("token")
    assert sessions.find(first) is None
    assert sessions.find(last)


def test_our_cookie_among_others() -> None:
    assert cookie(f"a=b; {COOKIE}=secret; c=d") == "secret"
    assert cookie(f"x{COOKIE}=secret; {COOKIE}") is None


async def passed(sessions: Sessions, **headers: str) -> Any:
    """Return the token that arrives behind the middleware, or the code of a refusal."""
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(dict(scope["headers"]).get(b"authorization"))

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.append(message["status"])

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "headers": raw}
    await SessionsAsTokens(app, sessions)(scope, receive, send)
    (found,) = seen
    return found


async def test_a_cookie_counts_with_the_word_of_the_page_only() -> None:
    sessions = Sessions()
    secret, session = sessions.begin("token")
    ours = f"{COOKIE}={secret}"
    assert await passed(sessions, cookie=ours, x_streamgraft_csrf=session.csrf) == b"Bearer token"
    assert await passed(sessions, cookie=ours) == 403
    assert await passed(sessions, cookie=ours, x_streamgraft_csrf="\u00fc") == 403
    assert await passed(sessions, cookie=f"{COOKIE}=other") is None
    assert await passed(sessions, cookie=ours, authorization="Bearer mine") == b"Bearer mine"
    assert await passed(sessions, x_streamgraft_ticket=sessions.ticket("t")) == b"Bearer t"
    assert await passed(sessions, x_streamgraft_ticket="used") == 401


def test_which_paths_are_open() -> None:
    """Files are; what the API server authorizes is not, nor is anything that looks like either."""
    assert all(map(is_page, ("/console", "/console/", "/console/main.js")))
    assert not any(map(is_page, ("/console/api/jobs", "/consoles", "/api/v1/console", "/")))
    assert is_callers_own("/console/api/jobs")
    assert not any(map(is_callers_own, ("/console/api", "/api/v1/x", "/console/apis/x")))
