"""Tickets and sessions of browsers, and what the middleware makes of them."""

from typing import Any

from starlette.types import Message, Receive, Scope, Send

from streamgraft_metrics_adapter.access.attributes import is_callers_own, is_page
from streamgraft_metrics_adapter.access.sessions import (
    COOKIE,
    MOST,
    MOST_PER_USER,
    SESSION_SECONDS,
    TICKET_SECONDS,
    Sessions,
    SessionsAsTokens,
    cookie,
    cookie_name,
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
    first, second = sessions.ticket("u", "token"), sessions.ticket("u", "token")
    assert sessions.redeem(first) == "token"
    assert sessions.redeem(first) is None
    clock.now = TICKET_SECONDS
    assert sessions.redeem(second) is None


def test_a_session_ends_by_itself_and_by_hand() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    secret, session = sessions.begin("u", "token")
    assert sessions.find(secret) == session
    assert sessions.find(secret + "x") is None
    clock.now = SESSION_SECONDS
    assert sessions.find(secret) is None
    other, _ = sessions.begin("u", "token")
    sessions.end(other)
    assert sessions.find(other) is None


def test_there_are_never_too_many() -> None:
    sessions = Sessions()
    secrets = [sessions.begin(f"u{number}", "token")[0] for number in range(MOST + 1)]
    assert sessions.find(secrets[0]) is None
    assert all(map(sessions.find, secrets[1:]))


def test_who_has_too_many_loses_the_oldest_of_their_own() -> None:
    """One account signs nobody else out, nor uses up their tickets."""
    sessions = Sessions()
    secret, _ = sessions.begin("other", "token")
    ticket = sessions.ticket("other", "token")
    own = [sessions.begin("u", "token")[0] for _ in range(MOST_PER_USER + 1)]
    tickets = [sessions.ticket("u", "token") for _ in range(MOST + 1)]
    assert [bool(sessions.find(each)) for each in own] == [False] + [True] * MOST_PER_USER
    assert sessions.find(secret)
    good = [sessions.redeem(each) for each in tickets]
    assert good == [None] * (MOST + 1 - MOST_PER_USER) + ["token"] * MOST_PER_USER
    assert sessions.redeem(ticket) == "token"


def test_our_cookie_among_others() -> None:
    assert cookie({"cookie": f"a=b; {COOKIE}=secret; c=d"}) == "secret"
    assert cookie({"cookie": f"x{COOKIE}=secret; {COOKIE}"}) is None
    assert cookie({}) is None


def test_consoles_on_two_ports_of_a_host_have_cookies_of_their_own() -> None:
    """Cookies know no ports."""
    both = f"{COOKIE}-8443=ours; {COOKIE}-9443=theirs; {COOKIE}=third"
    for host, secret in (("h:8443", "ours"), ("[::1]:9443", "theirs"), ("h", "third")):
        assert cookie({"host": host, "cookie": both}) == secret
    for host in ("[::1]", "h:", "h:1;x", "h:123456", "h:\u0661"):
        assert cookie_name(host) == COOKIE


async def passed(sessions: Sessions, path: str = "/console/api/jobs", **headers: str) -> Any:
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
    scope = {"type": "http", "path": path, "headers": raw}
    await SessionsAsTokens(app, sessions)(scope, receive, send)
    (found,) = seen
    return found


async def test_a_cookie_counts_with_the_word_of_the_page_only() -> None:
    sessions = Sessions()
    secret, session = sessions.begin("u", "token")
    ours = f"{COOKIE}={secret}"
    assert await passed(sessions, cookie=ours, x_streamgraft_csrf=session.csrf) == b"Bearer token"
    assert await passed(sessions, cookie=ours) == 403
    assert await passed(sessions, cookie=ours, x_streamgraft_csrf="\u00fc") == 401
    assert await passed(sessions, cookie=f"{COOKIE}=other") is None
    assert await passed(sessions, cookie=ours, authorization="Bearer mine") == b"Bearer mine"
    assert await passed(sessions, x_streamgraft_ticket=sessions.ticket("u", "t")) == b"Bearer t"
    assert await passed(sessions, x_streamgraft_ticket="used") == 401


async def test_the_page_can_be_reloaded() -> None:
    """With the cookie, which browsers send along, and without the word, which they can't."""
    sessions = Sessions()
    ours = f"{COOKIE}={sessions.begin('u', 'token')[0]}"
    for path in ("/console/", "/console/main.js"):
        assert await passed(sessions, path, cookie=ours) is None
    for path in ("/console/api/session", "/apis", "/api/v1/namespaces/n/regions"):
        assert await passed(sessions, path, cookie=ours) == 403


def test_which_paths_are_open() -> None:
    """Files are; what the API server authorizes is not, nor is anything that looks like either."""
    assert all(map(is_page, ("/console", "/console/", "/console/main.js")))
    assert not any(map(is_page, ("/console/api/jobs", "/consoles", "/api/v1/console", "/")))
    assert is_callers_own("/console/api/jobs")
    assert not any(map(is_callers_own, ("/console/api", "/api/v1/x", "/console/apis/x")))
