"""Workers don't wait for external calls, and one namespace's calls hold up no other."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from streamgraft_common.kube import ApiError
from streamgraft_operator.kit import external_calls as module
from streamgraft_operator.kit.external_calls import PARALLEL_IN_NAMESPACE, ExternalCalls, UnderWay


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and pauses of the test don't take seconds."""
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.01)


async def _never() -> str:
    await asyncio.Event().wait()
    return ""


async def _at_once() -> str:
    return "there"


async def _ask(
    external_calls: ExternalCalls,
    call: Callable[[], Awaitable[str]],
    key: tuple[str, str] = ("ns", "job"),
    wanted: str = "a",
    longest: float = 0.01,
) -> str:
    return await external_calls.ask(key, "bundle", wanted, call, longest_pause_seconds=longest)


async def test_an_answer_that_comes_at_once() -> None:
    assert await _ask(ExternalCalls(), _at_once) == "there"


async def test_an_answer_that_comes_later() -> None:
    external_calls, open_ = ExternalCalls(), asyncio.Event()

    async def later() -> str:
        await open_.wait()
        return "late"

    for _ in range(3):
        with pytest.raises(UnderWay):
            await _ask(external_calls, later)
    open_.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await _ask(external_calls, later) == "late"


async def test_others_are_answered_while_a_namespace_waits() -> None:
    external_calls = ExternalCalls()
    for number in range(PARALLEL_IN_NAMESPACE * 5):
        with pytest.raises(UnderWay):
            await _ask(external_calls, _never, ("noisy", f"job-{number}"))
    assert await _ask(external_calls, _at_once, ("quiet", "job")) == "there"
    external_calls.close()


async def test_what_is_wanted_now_counts() -> None:
    external_calls = ExternalCalls()
    with pytest.raises(UnderWay):
        await _ask(external_calls, _never)
    assert await _ask(external_calls, _at_once, wanted="b") == "there"


async def test_who_asks_the_same_waits_for_the_same_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 5.0)
    external_calls, asked = ExternalCalls(), 0

    async def soon() -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.02)
        return "there"

    answers = await asyncio.gather(*(_ask(external_calls, soon) for _ in range(3)))
    assert (answers, asked) == (["there"] * 3, 1)


async def test_who_waits_for_what_is_given_up_may_ask_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody has cancelled the one that waits."""
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 5.0)
    external_calls = ExternalCalls()
    waiting = asyncio.ensure_future(_ask(external_calls, _never))
    await asyncio.sleep(0.02)
    assert await _ask(external_calls, _at_once, wanted="b") == "there"
    with pytest.raises(UnderWay):
        await waiting


async def test_a_failure_is_said_until_the_next_attempt_succeeds() -> None:
    external_calls, answers = ExternalCalls(), ["", "", "there"]

    async def fails_twice() -> str:
        if answer := answers.pop(0):
            return answer
        raise ValueError("not yet")

    failed = 0
    async with asyncio.timeout(5):
        while True:
            try:
                assert await _ask(external_calls, fails_twice) == "there"
                break
            except ValueError:
                failed += 1
            except UnderWay:
                pass
            await asyncio.sleep(0.001)
    assert failed >= 2


async def test_errors_come_as_they_were_raised() -> None:
    error = ApiError(403, "Forbidden", "no")

    async def refused() -> str:
        raise error

    with pytest.raises(ApiError) as raised:
        await _ask(ExternalCalls(), refused)
    assert raised.value is error


async def test_who_is_forgotten_is_asked_no_more() -> None:
    external_calls = ExternalCalls()
    asked = asyncio.Event()

    async def ask() -> str:
        try:
            return await _never()
        finally:
            asked.set()

    with pytest.raises(UnderWay):
        await _ask(external_calls, ask)
    external_calls.forget(("ns", "job"), "lag")
    with pytest.raises(UnderWay):
        await _ask(external_calls, ask)
    external_calls.forget(("ns", "job"), "bundle")
    await asyncio.wait_for(asked.wait(), 5)


async def test_a_server_that_was_away_for_days_is_asked_again() -> None:
    """Doubled so many times, a pause is no number any more."""
    external_calls, asked = ExternalCalls(), 0

    async def refused() -> str:
        nonlocal asked
        asked += 1
        raise ApiError(503, "Unavailable", "away")

    with pytest.raises(ApiError):
        await _ask(external_calls, refused)
    (call,) = external_calls._calls.values()
    call.failures = 5000
    await asyncio.sleep(0.02)
    with pytest.raises(ApiError):
        await _ask(external_calls, refused)
    await asyncio.sleep(0.02)
    assert asked == 2
    await asyncio.sleep(0.02)
    with pytest.raises(ApiError):
        await _ask(external_calls, _at_once)
    await asyncio.sleep(0.02)
    assert await _ask(external_calls, _at_once) == "there"
