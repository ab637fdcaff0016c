"""Killed PEs of a consistent region that goes back to its last cut: how long until it flows again.

The pods of all PEs are killed in turn (SIGKILL, as a crash), under load, at any time between two
cuts or within one. The region has recovered once all of its shards have put aside records that were
sent after the kill, from the checkpoints that the rollback has put in place. What is final in the
end must have every record once.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.console import Console

from bench.cluster import Deployed, application
from bench.counts import wrong
from bench.pods import process_of
from bench.staged_files import BatchFiles
from bench.traffic import Load, create_topic
from streamgraft_local import Cluster

REGION = "all"
RATE = 200.0
"""Records a second while PEs are killed."""
FILL_RATE = 20_000.0
"""While the state is built: one record a key."""
PERIOD_SECONDS = 5.0
"""Between the begins of two cuts."""
KILLS = 3
"""Of each case."""
PATIENCE_SECONDS = 300.0
LOOK_SECONDS = 0.1
"""Between two looks at files, whose times the file system has."""
TEMPLATE = Path(__file__).parent / "applications" / "consistent.py"

console = Console()


@dataclass(frozen=True)
class KillCase:
    """How large a region is."""

    pes: int
    """One that reads, and channels with the rest."""
    keys: int
    """Of the state."""
    warm_pool: int = 0


@dataclass(frozen=True)
class KillResult:
    """What a case showed."""

    seconds: list[float]
    """Of each kill, until the region flowed again."""
    rollbacks: int
    lost: int
    duplicated: int

    def figures(self, case: str) -> dict[str, float]:
        """Return the figures by name; kills have numbers from 1 on."""
        return {
            **{
                f"recovery_s.{case}.{number}": round(seconds, 2)
                for number, seconds in enumerate(self.seconds, 1)
            },
            f"rollbacks.{case}": self.rollbacks,
            f"lost.{case}": self.lost,
            f"duplicated.{case}": self.duplicated,
        }


async def kills(cluster: Cluster, folder: Path, name: str, case: KillCase) -> KillResult:
    """Run a case on its own; `name`: of its job."""
    place = folder / f"{name}-files"
    files = BatchFiles(place)
    text = TEMPLATE.read_text()
    for old, new in (
        ('NAME = "consistent"', f'NAME = "{name}"'),
        ("CHANNELS = 1", f"CHANNELS = {case.pes - 1}"),
        ("PERIOD_SECONDS = 5.0", f"PERIOD_SECONDS = {PERIOD_SECONDS}"),
        ("FOLDER = Path()", f'FOLDER = Path("{place}")'),
    ):
        text = text.replace(old, new)
    source = folder / f"{name}.py"
    source.write_text(text)
    keys = [f"key-{number}" for number in range(case.keys)]
    create_topic(cluster.bootstrap_servers, f"{name}-in", 1)
    async with application(cluster, source) as app:
        async with _filled(cluster, f"{name}-in", keys, files) as load:
            await app.set_warm_pool(case.warm_pool)
            seconds = await _all_kills(app, case, files, load)
        lost, duplicated = await _final(files, keys, load.sent)
        rollbacks = (await app.consistent_region(REGION)).completed_rollback_id
    return KillResult(seconds, rollbacks, lost, duplicated)


@asynccontextmanager
async def _filled(
    cluster: Cluster, topic: str, keys: list[str], files: BatchFiles
) -> AsyncIterator[Load]:
    """Send a record of each key, and then a load, until the context is left."""
    with Load(cluster.bootstrap_servers, topic, keys, FILL_RATE) as load:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while load.sent < len(keys):
                await asyncio.sleep(LOOK_SECONDS)
            load.rate = RATE
            while files.newest_id() < len(keys):
                await asyncio.sleep(1)
        yield load


async def _all_kills(app: Deployed, case: KillCase, files: BatchFiles, load: Load) -> list[float]:
    chance = Random(1)
    found = []
    for number in range(KILLS):
        await _cut_after_now(app)
        await app.calm(case.warm_pool)
        await asyncio.sleep(chance.uniform(0, PERIOD_SECONDS))
        pe = (await app.pes())[number % case.pes]
        old, first, began = files.incarnations(), load.sent, time.time()
        os.kill(process_of(await app.pod(pe["status"]["pod"])), signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (flows := files.flowing(case.pes - 1, first, old)) is None:
                await asyncio.sleep(LOOK_SECONDS)
        found.append(flows - began)
        told = f"{case.pes} PEs, {case.keys} keys, pool of {case.warm_pool}"
        console.print(f"{told}: {pe['metadata']['name']} killed, flows after {found[-1]:.2f} s")
    return found


async def _cut_after_now(app: Deployed) -> None:
    """Wait until a cut is complete that begins from now on."""
    last = (await app.consistent_region(REGION)).sequence_id
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await app.consistent_region(REGION)).completed_sequence_id <= last:
            await asyncio.sleep(LOOK_SECONDS)


async def _final(files: BatchFiles, keys: list[str], sent: int) -> tuple[int, int]:
    """Return how many of the sent records are lost and doubled in what is final.

    Waits until none is lost, or for a while: what was sent last is made final with the next cut.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        lost, duplicated = wrong(keys, sent, files.final())
        if not lost or time.monotonic() > deadline:
            return lost, duplicated
        await asyncio.sleep(PERIOD_SECONDS)
