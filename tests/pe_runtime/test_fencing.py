"""A zombie: an owner that was cut off, whose shard was given to another, comes back."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.integration


async def test_zombie_does_not_take_the_shard_back(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """Its query is fenced off by the checkpoint, and it may not start it again."""
    zombie = await stage.start(0, [0])
    heir = await stage.start(1, [])
    await zombie.running(0)
    await heir.until(lambda status: status.ready, 240)
    source = load(200)
    output.until(lambda values: sum(map(len, values.values())) > 200)

    zombie.signal(signal.SIGSTOP)
    await zombie.name_pod(launch=2)  # the operator has given up on the first one
    await heir.assign([0], 2)
    await heir.running(0)
    zombie.signal(signal.SIGCONT)
    sent_before = source.sent
    await zombie.until(lambda status: status.shards["0"].state == "Failed", 120)
    sent = source.stop()
    assert source.sent > sent_before

    await heir.running(0)
    even = {key: list(range(count)) for key, count in sent.items() if int(key[1:]) % 2 == 0}
    output.until(lambda values: {k: sorted(set(v)) for k, v in values.items()} == even, 120)
    output.read(1.0)
    assert output.values == even
    assert (await heir.status()).shards["0"].state == "Running"
    assert zombie.process.poll() is None


@pytest.mark.long
async def test_zombie_ends_if_another_pod_has_its_name(stage: Any) -> None:
    """As after a lost node: its pod was deleted by force, and the PE, made anew, has its own."""
    zombie = await stage.start(0, [0])
    await zombie.running(0)
    zombie.signal(signal.SIGSTOP)
    await stage.delete_pod(zombie)
    heir = await stage.start_process(zombie.name, 1)
    await heir.until(lambda said: said.pod_uid == heir.uid and bool(said.shards), 240)
    zombie.signal(signal.SIGCONT)
    assert await asyncio.to_thread(zombie.process.wait, 120) == 1
    # What it said before it heard of its end does not stay.
    await heir.until(lambda said: said.pod_uid == heir.uid)
    await heir.running(0)


async def test_pe_whose_pod_was_deleted_by_force_ends(stage: Any) -> None:
    """Nobody else is there to end it, if its node is lost; it says nothing more."""
    pe = await stage.start(0, [0])
    before = await pe.running(0)
    await stage.delete_pod(pe)
    assert await asyncio.to_thread(pe.process.wait, 120) == 1
    assert (await pe.status()).shards.keys() == before.shards.keys()
