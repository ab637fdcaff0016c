"""kill -9 in real-time mode: what comes again is dropped."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytestmark = pytest.mark.integration

KILLS = 2


def _has(count: int, values: dict[str, list[int]]) -> bool:
    return sum(map(len, values.values())) >= count


@pytest.mark.parametrize("stage", ["real time"], indirect=True)
async def test_killed_in_real_time(stage: Any, load: Callable[[int], Any], output: Any) -> None:
    """Within its batch of five seconds, of which records were written."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    source = load(300)
    for _ in range(KILLS):
        wanted = sum(map(len, output.values.values())) + 300
        output.until(partial(_has, wanted), 120)
        pe.signal(signal.SIGKILL)
        await asyncio.to_thread(pe.process.wait)
        await stage.delete_pod(pe)
        pe = await stage.start_process(pe.name, 0)
    await pe.running(0, 1)
    sent = source.stop()
    output.until(lambda values: sum(map(len, values.values())) >= sum(sent.values()), 120)
    output.read(1.0)
    assert output.values == {key: list(range(count)) for key, count in sent.items()}
