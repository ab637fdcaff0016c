"""The event loop of the simulation."""

import asyncio
import random
import time

import pytest
from tests.simulation.virtual_time import EPOCH, Process, VirtualLoop, virtual_clocks


def test_time_jumps_to_the_next_timer() -> None:
    loop = VirtualLoop(random.Random(1))
    seen: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, time.time() - EPOCH))

    with virtual_clocks(loop):
        loop.start(Process("a"), sleep("day", 86_400))
        loop.start(Process("b"), sleep("hour", 3_600))
        loop.run(3_600)
        assert [name for name, _ in seen] == ["hour"]
        loop.run(90_000)
    assert [name for name, _ in seen] == ["hour", "day"]
    assert [at for _, at in seen] == pytest.approx([3_600, 86_400])
    assert loop.time() == pytest.approx(90_000)
    loop.close()


def test_what_asyncio_offers_works() -> None:
    loop = VirtualLoop(random.Random(1))
    seen: list[object] = []

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(1))
            seen.append(await asyncio.to_thread(lambda: "thread"))
        try:
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append(loop.time())
        lock = asyncio.Lock()
        async with lock:
            seen.append(lock.locked())

    loop.start(Process("a"), work())
    loop.run(100)
    assert seen == ["thread", pytest.approx(6.0), True]
    loop.close()
    assert loop.errors == []


def test_a_process_dies_at_any_step_with_its_children() -> None:
    def steps_until(limit: int) -> list[str]:
        loop = VirtualLoop(random.Random(1))
        seen: list[str] = []

        async def child() -> None:
            for number in range(3):
                seen.append(f"child {number}")
                await asyncio.sleep(1)

        async def parent() -> None:
            task = asyncio.create_task(child())
            seen.append("parent")
            await task

        process, other = Process("dies"), Process("lives")
        process.steps_left = limit
        loop.start(process, parent())
        loop.run(10)
        loop.start(other, parent())
        loop.run(20)
        assert not process.alive
        loop.close()
        return seen[:-4]

    assert [len(steps_until(limit)) for limit in (1, 2, 3, 5)] == [1, 2, 2, 3]
