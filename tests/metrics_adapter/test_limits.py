"""What callers can't make the adapter do, whoever they are."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgraft_metrics_adapter.access import limits
from streamgraft_metrics_adapter.access.attributes import Attributes
from streamgraft_metrics_adapter.access.authentication import Authenticator, Headers, User
from streamgraft_metrics_adapter.access.authorization import Authorizer
from streamgraft_metrics_adapter.access.connections import CONNECTIONS, PER_ADDRESS, Connections
from streamgraft_metrics_adapter.access.guard import PER_USER, STREAMS_PER_USER, Guard
from streamgraft_metrics_adapter.access.limits import BODY_BYTES, DIRECT, Limits
from streamgraft_metrics_adapter.access.shares import Rate, Share
from streamgraft_metrics_adapter.access.tls import PEER
from streamgraft_metrics_adapter.status import TooManyError, UnauthorizedError

NO_HEADERS: Mapping[str, str] = {}
PROXY = b"the front proxy's certificate"


class Reader:
    """An application that waits until it may go on, reads the whole body, and answers 200."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.started = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        self.started.release()
        await self.may_go_on.wait()
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


class AnyToken:
    """Knows each caller by the token; nobody's token may be tried twice from an address."""

    def __init__(self) -> None:
        self._attempts = Rate("unknown tokens", 1, 0.001)

    async def user(self, _peer: bytes | None, headers: Headers, address: str) -> User:
        """Return the user."""
        if token := dict(headers).get("authorization"):
            return User(token)
        self._attempts.acquire(address)
        raise UnauthorizedError("Unauthorized")


class AllAllowed:
    """Lets everybody do everything."""

    async def check(self, _user: User, _attributes: Attributes) -> None:
        """Return."""


def limited(app: ASGIApp) -> Limits:
    """Return an application within its limits."""
    return Limits(app, lambda peer: peer == PROXY)


def guarded(app: ASGIApp) -> Limits:
    """Return an application as it is served, with played access."""
    access = cast(Authenticator, AnyToken()), cast(Authorizer, AllAllowed())
    return limited(Guard(app, *access))


def refused(reason: str) -> float:
    """Return how many requests were counted as refused for a reason."""
    name = "streamgraft_adapter_refused_requests_total"
    return REGISTRY.get_sample_value(name, {"reason": reason}) or 0.0


async def request(
    app: Limits,
    *chunks: bytes,
    path: str = "/x",
    address: str = "10.0.0.1",
    peer: bytes | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> tuple[int, dict[str, Any]]:
    """Send a request; return the code and the document."""
    left = [*chunks, b""]
    sent: list[Message] = []

    async def receive() -> Message:
        chunk = left.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    async def send(message: Message) -> None:
        sent.append(message)

    found = [(name.encode(), text.encode()) for name, text in headers.items()]
    scope: Scope = {
        "type": "http",
        "method": "PUT",
        "path": path,
        "query_string": b"",
        "headers": found,
        "client": (address, 1),
        "state": {PEER: peer},
    }
    await app(scope, receive, send)
    return int(sent[0]["status"]), json.loads(sent[-1]["body"])


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([], {"content-length": str(BODY_BYTES + 1)}),
        ([], {"content-length": "many"}),
        ([b"x" * BODY_BYTES, b"x"], {}),
    ],
)
async def test_large_bodies_are_refused(chunks: list[bytes], headers: dict[str, str]) -> None:
    code, status = await request(limited(Reader()), *chunks, headers=headers)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_bodies_up_to_the_limit_pass() -> None:
    assert (await request(limited(Reader()), b"x" * BODY_BYTES))[0] == 200


async def test_too_many_at_once_get_429() -> None:
    """One address fills its share, and others theirs: the front proxy and probes still pass."""
    reader = Reader()
    reader.may_go_on.clear()
    app = limited(reader)
    half = DIRECT // 2
    waiting = [asyncio.create_task(request(app)) for _ in range(half)]
    for _ in waiting:
        await reader.started.acquire()
    assert (await request(app))[0] == 429
    waiting += [asyncio.create_task(request(app, address="10.0.0.2")) for _ in range(half)]
    for _ in range(half):
        await reader.started.acquire()
    code, status = await request(app, address="10.0.0.3")
    assert (code, status["reason"]) == (429, "TooManyRequests")
    passing = [
        asyncio.create_task(request(app, path="/healthz")),
        asyncio.create_task(request(app, peer=PROXY)),
    ]
    for _ in passing:
        await reader.started.acquire()
    reader.may_go_on.set()
    assert {code for code, _ in await asyncio.gather(*waiting, *passing)} == {200}
    assert (await request(app))[0] == 200


@pytest.mark.parametrize(
    ("path", "most"), [("/x", PER_USER), ("/api/v1/namespaces/n/stream", STREAMS_PER_USER)]
)
async def test_what_one_user_is_refused_is_counted(path: str, most: int) -> None:
    """Whatever addresses it comes from; once."""
    reader, before = Reader(), refused("TooManyRequests")
    reader.may_go_on.clear()
    app, ours = guarded(reader), {"authorization": "us"}
    waiting = [
        asyncio.create_task(request(app, path=path, address=str(number), headers=ours))
        for number in range(most)
    ]
    for _ in waiting:
        await reader.started.acquire()
    assert (await request(app, path=path, headers=ours))[0] == 429
    assert refused("TooManyRequests") == before + 1
    other = request(app, path=path, headers={"authorization": "other"})
    waiting.append(asyncio.create_task(other))
    reader.may_go_on.set()
    assert {code for code, _ in await asyncio.gather(*waiting)} == {200}
    assert refused("TooManyRequests") == before + 1


async def test_too_many_unknown_tokens_are_counted() -> None:
    """What is refused for its token alone is not: it took nothing from anybody."""
    app, before = guarded(Reader()), refused("TooManyRequests")
    assert [(await request(app))[0] for _ in range(3)] == [401, 429, 429]
    assert refused("TooManyRequests") == before + 2
    assert refused("Unauthorized") == 0


@pytest.mark.parametrize("headers", [{}, {"content-length": str(BODY_BYTES + 1)}])
async def test_large_bodies_are_refused_as_such_by_what_is_served(
    called: Any, headers: dict[str, str]
) -> None:
    """Whether its length was announced or not, and counted once."""
    before, path = refused("RequestEntityTooLarge"), "/api/v1/namespaces/n/regions/r/scale"
    headers = {**headers, "authorization": "us", "content-type": "application/json"}
    chunks = b"x" * BODY_BYTES, b"x"
    code, status = await request(guarded(called.app), *chunks, path=path, headers=headers)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")
    assert refused("RequestEntityTooLarge") == before + 1


async def test_live_views_are_a_route_of_their_own() -> None:
    """They last for minutes, which says nothing of how soon others are answered."""
    name = "streamgraft_adapter_request_duration_seconds_count"
    space = "/api/v1/namespaces/n"
    for path, route in (
        (f"{space}/regions/r", "regions"),
        (f"{space}/regions/r/stream", "stream"),
        (f"{space}/stream", "stream"),
    ):
        labels = {"route": route, "code": "200"}
        before = REGISTRY.get_sample_value(name, labels) or 0.0
        await request(guarded(Reader()), path=path, headers={"authorization": "us"})
        assert REGISTRY.get_sample_value(name, labels) == before + 1


def test_a_caller_takes_no_more_than_its_share() -> None:
    share = Share(3, 2)
    with share.place("a"), share.place("a"):
        with pytest.raises(TooManyError, match="2 requests of yours"), share.place("a"):
            pass
        with share.place("b"), pytest.raises(TooManyError, match="3 requests"), share.place("c"):
            pass
    with share.place("a"):
        pass


def test_a_rate_is_each_callers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    rate = Rate("things", 2, 0.5)
    for caller in ("a", "a", "b"):
        rate.acquire(caller)
    with pytest.raises(TooManyError, match="too many things: try again in 2 s"):
        rate.acquire("a")
    rate.acquire("b")
    now = 2.0
    rate.acquire("a")
    rate.give_back("a")
    rate.acquire("a")
    with pytest.raises(TooManyError):
        rate.acquire("a")


class Open:
    """A connection."""

    def __init__(self, *, is_busy: bool = False) -> None:
        self.is_busy = is_busy
        self.closed = False

    def close(self) -> None:
        """Note it."""
        self.closed = True


def test_idle_connections_make_room_for_new_ones() -> None:
    """Those of the address that has too many, the oldest first; what is busy stays."""
    connections, other = Connections(), Open()
    connections.add("probe", other)
    idle = [Open(is_busy=number == 0) for number in range(PER_ADDRESS + 2)]
    for connection in idle:
        connections.add("many", connection)
    assert [number for number, each in enumerate(idle) if each.closed] == [1, 2]
    assert not other.closed


def test_the_address_with_most_connections_makes_room() -> None:
    connections = Connections()
    addresses = CONNECTIONS // PER_ADDRESS
    found = {
        str(address): [Open() for _ in range(PER_ADDRESS)] for address in range(1, addresses + 1)
    }
    for address, theirs in found.items():
        for connection in theirs:
            connections.add(address, connection)
    newest = Open()
    connections.add("probe", newest)
    assert not newest.closed
    assert len(connections) == CONNECTIONS
    assert sum(each.closed for theirs in found.values() for each in theirs) == 1


def test_a_new_connection_goes_if_all_others_are_busy() -> None:
    connections = Connections()
    busy = [Open(is_busy=True) for _ in range(PER_ADDRESS)]
    for connection in busy:
        connections.add("many", connection)
    newest = Open()
    connections.add("many", newest)
    assert newest.closed
    assert not any(each.closed for each in busy)


async def test_requests_that_take_too_long_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.01)
    reader = Reader()
    reader.may_go_on.clear()
    code, status = await request(limited(reader))
    assert (code, status["reason"]) == (504, "Timeout")
