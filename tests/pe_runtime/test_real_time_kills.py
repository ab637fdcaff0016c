"""kill -9 in real-time mode: what comes again is dropped."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.pe_runtime.conftest import MODULE

pytestmark = pytest.mark.integration

KILLS = 2
SLOW = "n < reduce(sequence(0, 20000 + int(n % 2)), 0L, (total, one) -> total + one)"
"""True, and takes some 10 ms a record."""


def _has(count: int, values: dict[str, list[int]]) -> bool:
    return sum(map(len, values.values())) >= count


def check(source: Any, output: Any) -> None:
    """Stop the load, and see that its records come out once each, in order."""
    sent = source.stop()
    output.until(partial(_has, sum(sent.values())), 300)
    output.read(1.0)
    assert output.values == {key: list(range(count)) for key, count in sent.items()}


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
    check(source, output)


@pytest.mark.parametrize("stage", ["real time"], indirect=True)
async def test_stopped_before_a_killed_batch_has_run_again(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """A shard leaves as soon as it runs, before its batch comes to where it was, and comes back."""
    stage.write_bundle(MODULE.replace("n >= {least.value}", SLOW))
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    source = load(40)
    output.until(partial(_has, 240), 120)
    pe.signal(signal.SIGKILL)
    await asyncio.to_thread(pe.process.wait)
    await stage.delete_pod(pe)
    again = await stage.start_process(pe.name, 0)
    await again.until(lambda status: "1" in status.shards, 240)
    await again.assign([0], 2)
    await again.running(0)
    await again.assign([0, 1], 3)
    await again.running(0, 1)
    check(source, output)
