"""Shards move between processes while records flow: none lost, none duplicated, order kept."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.pe_runtime.conftest import KEYS, SHARDS

from streamgraft_pe_runtime.brokers import Brokers

pytestmark = pytest.mark.integration

MOVES = 6
REAL_TIME_MOVES = 2
"""Each waits for the end of a batch of five seconds."""


async def _move_to_and_fro(
    stage: Any, load: Callable[[int], Any], moves: int = MOVES
) -> dict[str, int]:
    """Move shard 0 between two PEs; shard 1 stays where it is. Returns what was sent."""
    first = await stage.start(0, [0, 1])
    second = await stage.start(1, [])
    await first.running(0, 1)
    await second.until(lambda status: status.ready, 240)
    source = load(300)
    owner, other, kept = first, second, {first.name: [1], second.name: []}
    for epoch in range(2, moves + 2):
        before = source.sent
        await owner.until(lambda status: status.ready)
        await owner.assign(kept[owner.name], epoch)
        released = await owner.until(lambda status: "0" not in status.shards)
        assert released.releases["0"].clean
        await other.assign([*kept[other.name], 0], epoch)
        taken = await other.running(0, *kept[other.name])
        assert taken.shards["0"].epoch == epoch
        assert source.sent > before
        owner, other = other, owner
    sent: dict[str, int] = source.stop()
    return sent


async def test_stateless(stage: Any, load: Callable[[int], Any], output: Any) -> None:
    """Every record goes through exactly once, and each key's in order."""
    sent = await _move_to_and_fro(stage, load)
    expected = {key: list(range(count)) for key, count in sent.items()}
    output.until(lambda values: sum(map(len, values.values())) >= sum(sent.values()))
    assert output.values == expected
    # The stage's consumer group shows the progress of both PEs, whoever else wrote to it late.
    brokers = Brokers(stage.cluster.bootstrap_servers, f"{stage.namespace}.numbers.work", {})
    partitions = [(stage.input, 0), (stage.input, 1)]
    brokers.publish(dict.fromkeys(partitions, 1))
    for pe in stage.processes:
        assert await pe.terminate() == 0
    output.read(1.0)
    assert output.values == expected
    ends = {key: end for key, (_, end) in brokers.bounds(partitions).found.items()}
    assert brokers.published(partitions) == ends
    brokers.close()


@pytest.mark.long
async def test_no_dip(stage: Any, load: Callable[[int], Any], output: Any) -> None:
    """What a channel that neither gives nor takes is sent comes out while a shard is under way."""
    giver, neighbour = await stage.start(0, [0]), await stage.start(1, [1])
    await giver.running(0)
    before = (await neighbour.running(1)).shards["1"]
    source = load(300)
    output.until(lambda values: len(values) == KEYS)
    await giver.assign([], 2)
    await giver.until(lambda status: not status.shards)
    output.read(1.0)
    stopped = {key: len(values) for key, values in output.values.items() if shard_of(key) == 0}
    mark = source.sent
    # Nobody has shard 0 now, for as long as its neighbour's records take.
    output.until(
        lambda values: all(
            len(values[key]) > mark // KEYS + 1 for key in values if shard_of(key) == 1
        )
    )
    assert {key: len(output.values[key]) for key in stopped} == stopped
    await giver.assign([0], 3)
    await giver.running(0)
    after = (await neighbour.running(1)).shards["1"]
    assert (after.epoch, after.first_batch_at) == (before.epoch, before.first_batch_at)
    assert (
        'streamgraft_pe_query_restarts_total{shard="1"} 0.0' in (await neighbour.get("/metrics"))[1]
    )
    expected = {key: list(range(count)) for key, count in source.stop().items()}
    output.until(lambda values: sum(map(len, values.values())) >= source.sent)
    assert output.values == expected


def shard_of(key: str) -> int:
    """Return the shard that a key of the load is in."""
    return int(key[1:]) % SHARDS


@pytest.mark.parametrize("stage", ["counted"], indirect=True)
async def test_stateful(stage: Any, load: Callable[[int], Any], output: Any) -> None:
    """The state moves along: counts only rise, and end at what was sent."""
    sent = await _move_to_and_fro(stage, load)
    output.until(lambda values: all(values.get(k, [0])[-1] >= n for k, n in sent.items()))
    assert {key: values[-1] for key, values in output.values.items()} == sent
    for values in output.values.values():
        assert values == sorted(set(values))


@pytest.mark.parametrize("stage", ["real time"], indirect=True)
async def test_real_time(stage: Any, load: Callable[[int], Any], output: Any) -> None:
    """A batch ends before its shard moves, so nothing is lost, repeated or out of order."""
    sent = await _move_to_and_fro(stage, load, REAL_TIME_MOVES)
    expected = {key: list(range(count)) for key, count in sent.items()}
    output.until(lambda values: sum(map(len, values.values())) >= sum(sent.values()))
    output.read(1.0)
    assert output.values == expected
