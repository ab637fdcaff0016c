"""Two replicas: one writes, the other waits; whatever happens to the first, no pod restarts."""

import asyncio
import signal
from asyncio.subprocess import Process
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.processes import operator_process
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kinds import LEASE
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration


class Replica:
    """A replica and its log."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process = process
        self._log = log

    def leads(self) -> bool:
        """Return whether the last it said of the lease is that it has it."""
        states = [line.rpartition(": ")[2] for line in self._log.read_text().splitlines()]
        return [text for text in states if text in ("leading", "waiting for the lease")][-1:] == [
            "leading"
        ]

    async def leading(self, so: bool = True) -> None:
        """Wait until it leads, or until it does not any more."""
        async with asyncio.timeout(60):
            while self.leads() != so:
                await asyncio.sleep(0.02)


async def transitions(world: World) -> int:
    """Return how often the lease has gone from one replica to another."""
    lease = await world.client.get(LEASE.path(SYSTEM_NAMESPACE, world.namespace))
    count: int = lease["spec"]["leaseTransitions"]
    return count


async def test_leader_frozen_ended_and_killed(
    cluster: Cluster, world: World, player: HandPlayedPe, source_topic: str, tmp_path: Path
) -> None:
    await world.upload(bundle(application(world.namespace)))
    async with AsyncExitStack() as stack:

        async def replica(name: str) -> Replica:
            running = operator_process(cluster, world, tmp_path, name)
            return Replica(await stack.enter_async_context(running), tmp_path / f"{name}.log")

        first = await replica("first")
        await first.leading()
        second = await replica("second")
        await world.submit()
        await world.job_in("Healthy")
        before = await world.uids()
        assert not second.leads()

        first.process.send_signal(signal.SIGSTOP)
        await second.leading()
        await world.scale("job-r", 2)
        await world.serving("job-r", 2)
        first.process.send_signal(signal.SIGCONT)
        await first.leading(False)  # until then the last it said is from before it was frozen
        handed_over = await transitions(world)

        second.process.send_signal(signal.SIGTERM)
        assert await second.process.wait() == 0
        await first.leading()
        assert await transitions(world) == handed_over + 1
        await world.scale("job-r", 3)
        await world.serving("job-r", 3)

        third = await replica("third")
        first.process.kill()
        await third.leading()
        await world.scale("job-r", 1)
        await world.serving("job-r", 1)
        await world.job_in("Healthy")
        assert await world.uids() == before
