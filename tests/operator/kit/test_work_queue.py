"""The work queue: every change is seen, no key is worked on twice at a time."""

import asyncio

import pytest

from streamgraft_operator.kit.work_queue import Closed, WorkQueue, retry_delay

A, B = ("ns", "a"), ("ns", "b")


async def test_key_is_handed_out_once_however_often_added() -> None:
    queue = WorkQueue()
    for key in (A, B, A, A):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == [A, B]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 0.01)


async def test_key_added_while_worked_on_comes_again_afterwards() -> None:
    queue = WorkQueue()
    queue.add(A)
    key = await queue.get()
    queue.add(A)
    other = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not other.done()
    queue.done(key)
    assert await other == A


async def test_waiting_worker_is_woken() -> None:
    queue = WorkQueue()
    workers = [asyncio.ensure_future(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add(A)
    queue.add(B)
    assert await asyncio.gather(*workers) == [A, B]


async def test_cancelled_worker_loses_no_key() -> None:
    queue = WorkQueue()
    first, second = (asyncio.ensure_future(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    queue.add(A)
    assert await second == A


async def test_earliest_timer_wins() -> None:
    queue = WorkQueue()
    queue.add_after(A, 60.0)
    queue.add_after(A, 0.01)
    queue.add_after(A, 30.0)
    assert await asyncio.wait_for(queue.get(), 5.0) == A
    queue.close()


async def test_retry_comes_back_by_itself() -> None:
    queue = WorkQueue()
    queue.add_rate_limited(A)
    assert await asyncio.wait_for(queue.get(), 5.0) == A


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(0, 0.1, 0.2), (3, 1.2, 1.6), (99, 24, 30)]
)
def test_delay_doubles_up_to_a_limit(failures: int, least: float, most: float) -> None:
    assert least <= retry_delay(failures) <= most


async def test_a_closed_queue_hands_out_nothing_but_accepts_done() -> None:
    queue = WorkQueue()
    queue.add(A)
    key = await queue.get()
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.close()
    with pytest.raises(Closed):
        await waiting
    queue.add(B)
    queue.done(key)
    with pytest.raises(Closed):
        await queue.get()
