"""A torture run: an application under load, width changes, edits, kills, and the comparison."""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from tests.e2e.torture.patience import answered
from tests.e2e.torture.schedule import Step, steps
from tests.e2e.torture.topics import PARTITIONS, Topics
from tests.e2e.torture.verification import Verdict, complete, verify
from tests.e2e.torture.victims import Killer

from bench.cluster import command
from bench.traffic import Load, create_topic, keys_by_group
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.resources import JOB, PARALLEL_REGION, ParallelRegionStatus
from streamgraft_local import Cluster

APPLICATION = Path(__file__).with_name("application.py")
NAME = "torture"
REGION = "work"
RATE = 100.0
BACKLOG_RATE = 3000.0
"""More than batches of so few records can take."""
KEYS_PER_GROUP = 4
WARM_PODS = 1
CHANGE_SECONDS = 300.0
"""A width change takes this long at most, whatever is killed meanwhile."""
DRAIN_SECONDS = 300.0
EDITED = ("EXTENDED = False", "EXTENDED = True")
"""An edit changes the one line of the application into the other, the next one changes it back."""
SUBMISSIONS = 10
_POLL_SECONDS = 0.1


class NotServing(Exception):
    """A width change did not come to its end in time."""


async def torture(
    cluster: Cluster, namespace: str, seed: int, changes: int, say: Callable[[str], None]
) -> Verdict:
    """Submit the application, run, and cancel it. Raises NotServing."""
    say(f"torture: seed {seed}, {changes} width changes")
    create_topic(cluster.bootstrap_servers, "torture-in", PARTITIONS)
    await command(cluster, "submit", str(APPLICATION), "--namespace", namespace, "--wait")
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        pool = {"spec": {"warmPool": WARM_PODS}}
        await client.patch(JOB.path(namespace, NAME), pool)
        run = Torture(cluster, client, namespace, say)
        verdict = await run.run(seed, changes)
    await command(cluster, "cancel", NAME, "--namespace", namespace)
    return verdict


@dataclass
class Torture:
    """One run in a namespace whose job is healthy."""

    cluster: Cluster
    client: KubeClient
    namespace: str
    say: Callable[[str], None]
    seconds: list[float] = field(default_factory=list)
    """How long each change took that was waited for."""
    kills: int = 0
    edits: int = 0

    async def run(self, seed: int, changes: int) -> Verdict:
        """Run all changes under load; raises NotServing."""
        servers = self.cluster.bootstrap_servers
        keys = [*chain(*keys_by_group(PARTITIONS, KEYS_PER_GROUP).values())]
        topics = Topics(servers, "torture-in", "torture-out", "torture-loose")
        try:
            with Load(servers, "torture-in", keys, RATE) as load:
                for number, step in enumerate(steps(seed, changes, PARTITIONS), 1):
                    await self._take(f"{number}/{changes}", step, load)
            await self._drained(topics, load.sent)
        finally:
            topics.close()
        verdict = verify(load.sent, topics.inputs, topics.results, topics.loose)
        verdict.kills, verdict.edits = self.kills, self.edits
        return verdict

    async def _take(self, number: str, step: Step, load: Load) -> None:
        if step.edit:
            await self._edit()
        killer = Killer(self.cluster, self.client, self.namespace, NAME)
        kill = asyncio.create_task(killer.kill(step.kill)) if step.kill else None
        began = time.monotonic()
        if step.kill and step.kill.backlog:
            load.rate = BACKLOG_RATE
        await self._scale(step.width)
        struck = f", it was {await kill}" if kill else ""
        self.kills += kill is not None
        load.rate = RATE
        if not step.hurried:
            await self._serving(step.width)
            self.seconds.append(time.monotonic() - began)
        self.say(f"{number}: {step}: {time.monotonic() - began:.1f} s{struck}")

    async def _edit(self) -> None:
        """Submit the application's other form; brokers and API servers may be away."""
        self.edits += 1
        with tempfile.TemporaryDirectory(prefix="streamgraft-edit-") as folder:
            source = await asyncio.to_thread(_written, Path(folder), extended=self.edits % 2 == 1)
            for left in reversed(range(SUBMISSIONS)):
                try:
                    await command(
                        self.cluster, "submit", str(source), "--namespace", self.namespace
                    )
                    return
                except subprocess.CalledProcessError:
                    if not left:
                        raise
                    await asyncio.sleep(1.0)

    async def _scale(self, width: int) -> None:
        body = {"spec": {"replicas": width}}
        await answered(lambda: self.client.patch(f"{self._region}/scale", body))

    async def _serving(self, width: int) -> None:
        """Wait until the region serves at a width and nothing is under way."""
        try:
            async with asyncio.timeout(CHANGE_SECONDS):
                while not (await self._healthy() and await self._settled(width)):
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise NotServing(
                f"width {width} after {CHANGE_SECONDS:.0f} s: {await self._why()}"
            ) from None

    async def _settled(self, width: int) -> bool:
        status = await self._status()
        resizing = {item.type: item.status for item in status.conditions}.get("Resizing")
        return status.width == width and resizing == "False"

    async def _healthy(self) -> bool:
        job = await answered(lambda: self.client.get(JOB.path(self.namespace, NAME)))
        return bool(job["status"]["phase"] == "Healthy")

    async def _status(self) -> ParallelRegionStatus:
        found = await answered(lambda: self.client.get(self._region))
        return ParallelRegionStatus.model_validate(found["status"])

    async def _why(self) -> str:
        return "; ".join(
            f"{item.type} {item.status} {item.message}"
            for item in (await self._status()).conditions
        )

    async def _drained(self, topics: Topics, sent: int) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline:
            await asyncio.to_thread(topics.read)
            if complete(sent, topics.inputs, topics.results):
                return

    @property
    def _region(self) -> str:
        return PARALLEL_REGION.path(self.namespace, names.region_name(NAME, REGION))


def _written(folder: Path, *, extended: bool) -> Path:
    """Write a form of the application, and return its file."""
    source, text = folder / APPLICATION.name, APPLICATION.read_text()
    source.write_text(text.replace(*EDITED) if extended else text)
    return source
