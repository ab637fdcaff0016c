"""What callers can't make the adapter do, whoever they are."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from streamgraft_metrics_adapter.access import limits
from streamgraft_metrics_adapter.access.limits import BODY_BYTES, UNDER_WAY, Limits


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


async def request(
    app: Limits, *chunks: bytes, path: str = "/x", **headers: str
) -> tuple[int, dict[str, Any]]:
    """Send a request; return the code and the document."""
    left = [*chunks, b""]
    sent: list[Message] = []

    async def receive() -> Message:
        chunk = left.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    async def send(message: Message) -> None:
        sent.append(message)

    found = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "method": "PUT", "path": path, "headers": found}
    await app(scope, receive, send)
    return int(sent[0]["status"]), json.loads(sent[-1]["body"])


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([], {"content_length": str(BODY_BYTES + 1)}),
        ([], {"content_length": "many"}),
        ([b"x" * BODY_BYTES, b"x"], {}),
    ],
)
async def test_large_bodies_are_refused(chunks: list[bytes], headers: dict[str, str]) -> None:
    code, status = await request(Limits(Reader()), *chunks, **headers)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_bodies_up_to_the_limit_pass() -> None:
    assert (await request(Limits(Reader()), b"x" * BODY_BYTES))[0] == 200


async def test_too_many_at_once_are_told_to_come_again() -> None:
    reader = Reader()
    reader.may_go_on.clear()
    app = Limits(reader)
    waiting = [asyncio.create_task(request(app)) for _ in range(UNDER_WAY)]
    for _ in waiting:
        await reader.started.acquire()
    code, status = await request(app)
    assert (code, status["reason"]) == (429, "TooManyRequests")
    healthy = asyncio.create_task(request(app, path="/healthz"))
    await reader.started.acquire()
    reader.may_go_on.set()
    assert {code for code, _ in await asyncio.gather(*waiting, healthy)} == {200}
    assert (await request(app))[0] == 200


async def test_requests_that_take_too_long_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.01)
    reader = Reader()
    reader.may_go_on.clear()
    code, status = await request(Limits(reader))
    assert (code, status["reason"]) == (504, "Timeout")
