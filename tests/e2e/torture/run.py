"""A torture run: an application under load, width changes, edits, kills, and the comparison."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from tests.e2e.torture.job import TorturedJob
from tests.e2e.torture.schedule import Kill, Means, Step, Victim, steps
from tests.e2e.torture.topics import PARTITIONS, Growth, Topics
from tests.e2e.torture.verification import Verdict, complete, verify
from tests.e2e.torture.victims import Killer

from bench.traffic import Load, create_topic, keys_by_group
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

APPLICATION = Path(__file__).with_name("application.py")
NAME = "torture"
REGION = "work"
RATE = 100.0
BACKLOG_RATE = 3000.0
"""More than batches of so few records can take."""
BACKLOG_SECONDS = 5.0
"""Behind a kill; the application gets through 1,000 records a second, and kills last up to 75 s."""
KEYS_PER_GROUP = 4
WARM_PODS = 1
CHANGE_SECONDS = 300.0
"""A width change takes this long at most, whatever is killed meanwhile."""
STILL_SECONDS = 120.0
"""At the end, without a new result: nothing more will come."""
EDITED = ("EXTENDED = False", "EXTENDED = True")
"""An edit changes the one line of the application into the other, the next one changes it back."""
KINDS = ("joint", "rocksdb", "event-time", "real-time", "real-time-loose")
"""What the region runs (application.py)."""


async def torture(
    cluster: Cluster,
    namespace: str,
    seed: int,
    changes: int,
    say: Callable[[str], None],
    kind: str = KINDS[0],
) -> Verdict:
    """Submit the application, run, and cancel it. Raises NotServing."""
    say(f"torture: {kind}, seed {seed}, {changes} width changes")
    create_topic(cluster.bootstrap_servers, "torture-in", PARTITIONS)
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        job = TorturedJob(cluster, client, namespace, NAME, REGION)
        run = Torture(job, kind, say)
        await run.submit("--wait")
        await job.patch({"warmPool": WARM_PODS})
        verdict = await run.run(seed, changes)
        await job.cancel()
    return verdict


@dataclass
class Torture:
    """One run with a job that is healthy."""

    job: TorturedJob
    kind: str
    say: Callable[[str], None]
    seconds: list[float] = field(default_factory=list)
    """How long each change took that was waited for."""
    struck: Counter[Means] = field(default_factory=Counter)
    edits: int = 0

    async def run(self, seed: int, changes: int) -> Verdict:
        """Run all changes under load; raises NotServing."""
        servers = self.job.cluster.bootstrap_servers
        keys = [*chain(*keys_by_group(PARTITIONS, KEYS_PER_GROUP).values())]
        topics = Topics(servers, "torture-in", "torture-out", self._with_repeats())
        grows = {place: Growth(servers, topic) for place, topic in self._written().items()}
        killer = Killer(self.job, amid={place: growth.wait for place, growth in grows.items()})
        try:
            with Load(servers, "torture-in", keys, RATE) as load:
                for number, step in enumerate(steps(seed, changes, PARTITIONS), 1):
                    await self._take(f"{number}/{changes}", step, load, killer)
            await self._drained(topics, load.sent)
        finally:
            topics.close()
            for growth in grows.values():
                growth.close()
        verdict = verify(load.sent, topics.inputs, topics.results, topics.loose)
        verdict.struck, verdict.edits = self.struck, self.edits
        return verdict

    def _written(self) -> dict[Victim, str]:
        """Return a topic that pods of each place write.

        Of the region it is that of the sink without transactions, which shows kills that hit. In
        real time, which writes all the time, that sink is behind it.
        """
        inputs = names.topic(self.job.namespace, NAME, "records", REGION)
        region: dict[Victim, str] = {} if "real-time" in self.kind else {"region": "torture-loose"}
        return {"source": inputs, **region, "sink": "torture-out"}

    def _with_repeats(self) -> str:
        """Return a topic to which crashes write records again."""
        if self.kind == "real-time-loose":
            return names.topic(self.job.namespace, NAME, "passed")
        return "torture-loose"

    async def _take(self, number: str, step: Step, load: Load, killer: Killer) -> None:
        if step.edit:
            self.edits += 1
            await self.submit()
        kill = asyncio.create_task(killer.kill(step.kill)) if step.kill else None
        began = time.monotonic()
        relief = _backlog(load, step.kill) if step.kill and step.kill.backlog else None
        await self.job.scale(step.width)
        struck = ""
        if kill and step.kill:
            victim = await kill
            struck = f", it was {victim or 'no pod'}"
            self.struck[step.kill.means] += victim is not None
        if relief:
            relief.cancel()
        load.rate = RATE
        if not step.hurried:
            await self.job.serving(step.width, CHANGE_SECONDS)
            self.seconds.append(time.monotonic() - began)
        self.say(f"{number}: {step}: {time.monotonic() - began:.1f} s{struck}")

    async def submit(self, *options: str) -> None:
        """Submit the application in the form that so many edits have given it."""
        text = APPLICATION.read_text().replace('KIND = "joint"', f'KIND = "{self.kind}"')
        if self.edits % 2:
            text = text.replace(*EDITED)
        with tempfile.TemporaryDirectory(prefix="streamgraft-edit-") as folder:
            source = Path(folder, APPLICATION.name)
            await asyncio.to_thread(source.write_text, text)
            await self.job.submit(source, *options)

    async def _drained(self, topics: Topics, sent: int) -> None:
        came, last = 0, time.monotonic()
        while time.monotonic() < last + STILL_SECONDS:
            await asyncio.to_thread(topics.read)
            if complete(sent, topics.inputs, topics.results):
                return
            if len(topics.results) > came:
                came, last = len(topics.results), time.monotonic()


def _backlog(load: Load, kill: Kill) -> asyncio.TimerHandle:
    """Let records come faster than they are treated, for a while."""
    load.rate = BACKLOG_RATE

    def relieve() -> None:
        load.rate = RATE

    return asyncio.get_running_loop().call_later(kill.after + BACKLOG_SECONDS, relieve)
