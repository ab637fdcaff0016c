"""What a channel that dies, or is frozen, costs the other one: for `make bench-recovery`.

Both write a topic of one partition. A channel is struck while a transaction of it is open there, so
that readers of committed records wait for its end also with the other's. Other records of the other
channel go through a partition of its own, where only CPU can be missing.
"""

import asyncio
import os
import signal
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import OFFSET_END, Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from rich.console import Console

from bench.cluster import Deployed, application
from bench.pods import family_of
from bench.traffic import CRITICAL, Load, Probe, create_topic
from streamgraft_common.kube.client import Object
from streamgraft_local import Cluster

Keys = Mapping[int, list[str]]
SHARED = "bench-shared"
STRIKES = {"killed": 4, "frozen": 4}
FROZEN_SECONDS = 5.0
CALM_SECONDS = 30.0
ATTEMPTS = 50
SETTLED_SECONDS = 1.0
"""Transactions of others have ended by then, and the next ones, too."""
OUT_SECONDS = 5.0
"""Records have come out by then, if nothing happens."""
PATIENCE_SECONDS = 30.0

console = Console()


@dataclass(frozen=True)
class Delays:
    """What a strike added to the longest time of a record of the other channel, in seconds."""

    apart: float
    """In a partition of its own."""
    shared: float
    """In the partition that both write."""


@dataclass(frozen=True)
class Neighbours:
    """All strikes of a run."""

    delays: Mapping[str, list[Delays]]
    """By what was done: killed, frozen."""
    lost: int
    duplicated: int

    def figures(self) -> dict[str, float]:
        """Return the longest delays by name."""
        found: dict[str, float] = {}
        for kind, delays in self.delays.items():
            found[f"neighbour_delay_s_max.{kind}"] = max(item.apart for item in delays)
            found[f"neighbour_delay_s_max.shared.{kind}"] = max(item.shared for item in delays)
        found = {name: round(seconds, 2) for name, seconds in found.items()}
        return found | {"neighbour_delay_s_max": max(found.values())}


class SharedPartition:
    """The topic of one partition, and which transactions are open in it."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "open",
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 5,
                "log_level": CRITICAL,
            }
        )
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        self._place = TopicPartition(SHARED, 0)

    def stop_amid(self, family: Sequence[psutil.Process], keys: Container[str]) -> float:
        """Stop processes (SIGSTOP) that have a transaction open with records of these keys.

        Goes on until one was met, and returns when it was stopped (Unix seconds). Blocks. Raises
        TimeoutError.
        """
        # The JVM first, at once: a transaction is soon over.
        pids = [item.pid for item in sorted(family, key=lambda item: item.name() != "java")]
        for _ in range(ATTEMPTS):
            self._wait(keys)
            _send(pids, signal.SIGSTOP)
            stopped_at = time.time()
            if self._held_back():
                return stopped_at
            _send(pids, signal.SIGCONT)
        raise TimeoutError("no transaction was met that was open")

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _wait(self, keys: Container[str]) -> None:
        """Block until a record of one of these keys is written."""
        self._consumer.assign([TopicPartition(SHARED, 0, OFFSET_END)])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for message in self._consumer.consume(1, 0.1):
                if message.error() is None and (message.key() or b"").decode() in keys:
                    return
        raise TimeoutError(f"no record in {SHARED}")

    def _held_back(self) -> bool:
        """Return whether a transaction stays open for longer than others take."""
        time.sleep(SETTLED_SECONDS)
        before = self._end(IsolationLevel.READ_COMMITTED)
        time.sleep(SETTLED_SECONDS)
        stable = self._end(IsolationLevel.READ_COMMITTED)
        return stable == before and self._end(IsolationLevel.READ_UNCOMMITTED) > stable

    def _end(self, isolation: IsolationLevel) -> int:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        found = self._admin.list_offsets({self._place: latest}, isolation_level=isolation)
        return int(found[self._place].result(PATIENCE_SECONDS).offset)


@dataclass(frozen=True)
class Struck:
    """The channels, the load, and what comes out."""

    app: Deployed
    keys: Keys
    load: Load
    probes: tuple[Probe, Probe]
    """Of partitions of their own, and of the shared one."""
    partition: SharedPartition

    async def strike(self, kind: str, pe: Object) -> Delays:
        """Kill or freeze a channel amid a transaction; return what that costs the other one."""
        mine = {*chain(*(self.keys[group] for group in pe["spec"]["shards"]))}
        others = {*chain(*self.keys.values())} - mine
        family = family_of(await self.app.pod(pe["status"]["pod"]))
        calm = time.time() - CALM_SECONDS, time.time() - OUT_SECONDS
        stopped_at = await asyncio.to_thread(self.partition.stop_amid, family, mine)
        if kind == "frozen":
            await asyncio.sleep(stopped_at + FROZEN_SECONDS - time.time())
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill() if kind == "killed" else process.resume()
        await asyncio.sleep(CALM_SECONDS)
        now = time.time()
        before, after = (
            [self._longest(probe, others, *span) for probe in self.probes]
            for span in (calm, (stopped_at, now))
        )
        return Delays(*(max(0.0, late - usual) for usual, late in zip(before, after, strict=True)))

    def _longest(self, probe: Probe, keys: Container[str], start: float, end: float) -> float:
        sent_at = self.load.sent_at
        took = [
            item.at - sent_at[item.id]
            for item in probe.arrivals.items
            if item.key in keys and start <= sent_at[item.id] < end
        ]
        return max(took, default=0.0)


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)


async def measure(cluster: Cluster, keys: Keys, every_key: list[str], rate: float) -> Neighbours:
    """Strike channels of a job of their own in turn."""
    servers = cluster.bootstrap_servers
    create_topic(servers, "bench-in-neighbours", 1)
    source = Path(__file__).parent / "applications" / "neighbours.py"
    delays: dict[str, list[Delays]] = {kind: [] for kind in STRIKES}
    async with application(cluster, source) as app:
        await app.set_warm_pool(1)
        partition = SharedPartition(servers)
        with (
            Probe(servers, "bench-out-neighbours", len(keys)) as probe,
            Probe(servers, SHARED, 1) as shared,
        ):
            with Load(servers, "bench-in-neighbours", every_key, rate) as load:
                struck = Struck(app, keys, load, (probe, shared), partition)
                for kind, count in STRIKES.items():
                    for number in islice(cycle(range(len(keys))), count):
                        await app.calm(1)
                        await asyncio.sleep(CALM_SECONDS)
                        channels = [pe for pe in await app.pes() if "region" in pe["spec"]]
                        delays[kind].append(await struck.strike(kind, channels[number]))
                        console.print(f"a channel is {kind}: the other one {delays[kind][-1]}")
            for each in (probe, shared):
                await each.drained(load.sent)
        partition.close()
    came = (probe.arrivals, shared.arrivals)
    return Neighbours(
        delays,
        sum(each.lost(load.sent) for each in came),
        sum(each.duplicated() for each in came),
    )
