"""The shards of an owner that dies amid a batch go to several others."""

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from streamgraft_pe_runtime.query_logs import is_cut_off

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("plain", marks=pytest.mark.long),
        "counted",
        pytest.param("distinct", marks=pytest.mark.long),
        pytest.param("distinct on RocksDB", marks=pytest.mark.long),
    ],
    indirect=True,
)
async def test_batch_of_several_shards_is_ended_before_they_part(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """One of the new owners ends it, as it was planned; each record is written once, in order, and
    each is counted once."""
    first = await stage.start(0, [0, 1])
    others = [await stage.start(number, []) for number in (1, 2)]
    await first.running(0, 1)
    for other in others:
        await other.until(lambda status: status.ready, 240)
    source = load(500)
    many = 500 if stage.operator == "plain" else 20
    output.until(lambda values: sum(map(len, values.values())) > many)
    folder = stage.folder / "checkpoints" / stage.metadata().checkpoint_path
    (checkpoint,) = folder.glob("queries/*")
    deadline = time.monotonic() + 240
    while True:  # until it is dead amid a batch
        while not await asyncio.to_thread(is_cut_off, checkpoint):
            assert first.process.poll() is None, first.log.read_text()[-4000:]
            assert time.monotonic() < deadline
            await asyncio.sleep(0)
        first.signal(signal.SIGSTOP)
        if is_cut_off(checkpoint):
            break
        first.signal(signal.SIGCONT)
    first.signal(signal.SIGKILL)
    await asyncio.gather(others[0].assign([0], 2), others[1].assign([1], 2))
    await asyncio.gather(others[0].running(0), others[1].running(1))
    sent = source.stop()
    if stage.operator == "plain":
        expected = {key: list(range(count)) for key, count in sent.items()}
        output.until(lambda values: sum(map(len, values.values())) >= source.sent)
        output.read(1.0)
        assert output.values == expected
    else:
        output.until(lambda values: {key: found[-1] for key, found in values.items()} == sent)
        assert all(values == sorted(set(values)) for values in output.values.values())
    assert any("ending the batch" in other.log.read_text() for other in others)
