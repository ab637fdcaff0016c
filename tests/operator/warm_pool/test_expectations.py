"""What the operator asks the metrics API for, and what it makes of answers."""

import asyncio
from typing import Any

import pytest

from streamgraft_common.kube import ApiError, KubeClient, KubeConfig, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_operator.warm_pool import expectations
from streamgraft_operator.warm_pool.expectations import Expectations

JOB = ("shop", "flights")
PATH = (
    "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop"
    "/parallelregions.streamgraft.io/{}/expected_demand"
)


class CannedClient(KubeClient):
    """Answers with what the test says, and notes what it was asked."""

    def __init__(self, answer: Any) -> None:
        super().__init__(KubeConfig("http://127.0.0.1:1"))
        self.answer = answer
        self.asked: list[str] = []

    async def get(self, path: str, **query: str) -> Object:
        """Return the answer, raise it, or give none."""
        self.asked.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return {"items": [{"value": self.answer}]}


@pytest.mark.parametrize(("answer", "width"), [("3", 3), ("4000m", 4), ("0", 0)])
async def test_a_value_is_a_quantity(answer: str, width: int) -> None:
    client = CannedClient(answer)
    assert await Expectations(client).widths(JOB, ["flights-a", "flights-b"]) == {
        "flights-a": width,
        "flights-b": width,
    }
    assert client.asked == [PATH.format("flights-a"), PATH.format("flights-b")]


@pytest.mark.parametrize(
    "answer",
    [
        ApiError(503, "ServiceUnavailable", "WarmingUp"),
        ApiError(404, "NotFound", "there is no metrics API"),
        ApiError(403, "Forbidden", "a role of an older version"),
        Unreachable("connection refused"),
        None,
    ],
    ids=str,
)
async def test_without_an_answer_nothing_is_expected(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | None
) -> None:
    monkeypatch.setattr(expectations, "ANSWER_SECONDS", 0.01)
    assert await Expectations(CannedClient(answer)).widths(JOB, ["a"]) == {}


async def test_the_last_answer_counts_while_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each width change would empty the pool, and fill it again behind itself."""
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    client = CannedClient("4")
    found = Expectations(client)
    await found.widths(JOB, ["a"])
    client.answer = ApiError(503, "ServiceUnavailable", "Resizing")
    for seconds, widths in ((90.0, {"a": 4}), (1799.0, {"a": 4}), (1801.0, {})):
        clock[0] = 1000.0 + seconds
        assert await found.widths(JOB, ["a"]) == widths


async def test_it_asks_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    client = CannedClient("3")
    found = Expectations(client)
    for seconds, width, asked in ((0.0, 3, 1), (59.0, 3, 1), (60.0, 5, 2)):
        clock[0] = 1000.0 + seconds
        assert await found.widths(JOB, ["a"]) == {"a": width}
        assert len(client.asked) == asked
        client.answer = "5"
    found.forget(JOB)
    await found.widths(JOB, ["a"])
    assert len(client.asked) == 3
