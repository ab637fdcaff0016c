"""A torture run of a consistent region: rounds of kills under load, each followed by a comparison.

A round asks for a cut, a rollback or a width change, and strikes parts while that is under way. It
is right when all is at rest again, and both sinks have what a batch computation makes of all
records that were sent by the end of the last kill, nothing of it twice.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from pathlib import Path

from tests.e2e.torture.consistent.outcome import Lines, Outcome
from tests.e2e.torture.consistent.region import Region
from tests.e2e.torture.consistent.repository import Repository
from tests.e2e.torture.consistent.rounds import Policy, Round, rounds
from tests.e2e.torture.job import NotServing, TorturedJob
from tests.e2e.torture.schedule import Kill, Means
from tests.e2e.torture.topics import PARTITIONS
from tests.e2e.torture.victims import Killer

from bench.traffic import Load, create_topic, keys_by_group
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

APPLICATION = Path(__file__).with_name("application.py")
NAME = "cuts"
SOURCE_TOPIC, RESULTS_TOPIC = "cuts-in", "cuts-out"
RATE = 50.0
BACKLOG_RATE, BACKLOG_SECONDS = 1000.0, 5.0
"""More than PEs that take part in a cut can take; a busy machine must catch up with it as well."""
KEYS_PER_GROUP = 4
WARM_PODS = 1
START_SECONDS = 600.0
MOMENT_SECONDS = 20.0
"""What was asked for is under way after so long at most, or the kill comes all the same."""
ROUND_SECONDS = 600.0
"""All is right again after so long at most, whatever was struck."""
_MOMENT_POLL_SECONDS, _POLL_SECONDS = 0.05, 0.5


@dataclass
class Verdict:
    """What was found."""

    runs: int = 0
    """Rounds."""
    wrong: int = 0
    """Rounds after which something was not as a batch computation has it; the end is one more."""
    problems: list[str] = field(default_factory=list)
    victims: Counter[str] = field(default_factory=Counter)
    """What was struck."""
    struck: Counter[Means] = field(default_factory=Counter)
    """By what."""
    during: Counter[str] = field(default_factory=Counter)
    """What was under way then: cut, rollback, width."""
    seconds: list[float] = field(default_factory=list)
    """How long each round took."""
    records: int = 0
    cuts: int = 0
    """Numbers of cuts; some were given up."""
    rollbacks: int = 0
    repeated: int = 0
    """Results in the topic that rollbacks have written once more."""

    def note(self, problems: list[str], seconds: float) -> None:
        """Count a round."""
        self.runs += 1
        self.seconds.append(seconds)
        self.wrong += bool(problems)
        self.problems += problems


async def torture(
    cluster: Cluster,
    namespace: str,
    folder: Path,
    seed: int,
    count: int,
    say: Callable[[str], None],
) -> Verdict:
    """Submit the application, run, and cancel it if all is right.

    `folder`: for the database and the repository.
    """
    say(f"torture of a consistent region: seed {seed}, {count} rounds")
    servers = cluster.bootstrap_servers
    create_topic(servers, SOURCE_TOPIC, PARTITIONS)
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        job = TorturedJob(cluster, client, namespace, NAME, "work")
        with Repository(folder / "repository") as repository:
            await repository.tell(client, namespace)
            lines = Lines(folder)
            run = Torture(job, Region(job, "all"), repository, folder, say)
            await run.begin()
            with closing(Outcome(servers, SOURCE_TOPIC, RESULTS_TOPIC, lines)) as run.outcome:
                verdict = await run.run(seed, count)
            if not verdict.problems:  # else it is left to be looked at
                await job.cancel()
    return verdict


@dataclass
class Torture:
    """One run in a namespace of its own."""

    job: TorturedJob
    region: Region
    repository: Repository
    folder: Path
    say: Callable[[str], None]
    verdict: Verdict = field(default_factory=Verdict)
    outcome: Outcome = field(init=False)
    _policy: Policy = "never"
    _width: int = 1
    _rollbacks: int = 0
    """Begun before this round."""

    async def begin(self) -> None:
        """Have the job run with its repository and one cut."""
        await self._submit("--wait")
        spec = {"warmPool": WARM_PODS, "processingElement": self.repository.spec}
        await self.job.apply(spec, START_SECONDS)
        async with asyncio.timeout(START_SECONDS):
            while not (await self.region.status()).completed_sequence_id:
                await asyncio.sleep(_POLL_SECONDS)

    async def run(self, seed: int, count: int) -> Verdict:
        """Run all rounds; one that does not come to its end is the last one."""
        keys = [*chain(*keys_by_group(PARTITIONS, KEYS_PER_GROUP).values())]
        with Load(self.job.cluster.bootstrap_servers, SOURCE_TOPIC, keys, RATE) as load:
            for number, item in enumerate(rounds(seed, count), 1):
                began = time.monotonic()
                try:
                    problems, over = await self._round(f"{number}/{count}: {item}", item, load)
                except NotServing as error:
                    problems, over = [str(error)], False
                self.verdict.note(problems, time.monotonic() - began)
                for problem in problems:
                    self.say(f"{number}: WRONG: {problem}")
                if not over:
                    return self.verdict
        await self._end(load.sent)
        return self.verdict

    async def _end(self, sent: int) -> None:
        """Compare everything once more, now that nothing comes any more."""
        problems, over = await self._right(sent)
        problems += self.outcome.comparison.run_ends() if over else []
        self.verdict.wrong += bool(problems)
        self.verdict.problems += problems
        status = await self.region.status()
        self.verdict.records, self.verdict.repeated = sent, self.outcome.comparison.repeated
        self.verdict.cuts, self.verdict.rollbacks = status.sequence_id, status.rollback_id

    async def _round(self, name: str, item: Round, load: Load) -> tuple[list[str], bool]:
        """Return what is wrong at the end of a round, and whether it came to its end."""
        began = time.monotonic()
        if item.policy != self._policy:
            self._policy = item.policy
            await self._submit()
            await self._follows_policy()
        wanted = await self._ask(item)
        self._width = item.width
        await self._until_under_way(item, wanted)
        delays = accumulate(kill.after for kill in item.kills)
        strikes = (self._strike(*of) for of in zip(item.kills, delays, strict=True))
        surge = asyncio.create_task(_surge(load, any(kill.backlog for kill in item.kills)))
        struck = await asyncio.gather(*strikes)
        await surge
        after = time.monotonic() - began
        problems, over = await self._right(load.sent, wanted if item.moment == "rollback" else 0)
        seconds = f"{after:.1f} + {time.monotonic() - began - after:.1f} s"
        self.say(f"{name}: {seconds}, it was {', then '.join(struck)}")
        return problems, over

    async def _ask(self, item: Round) -> int:
        match item.moment:
            case "cut":
                return await self.region.ask_for_cut()
            case "rollback":
                return await self.region.ask_for_rollback()
            case "width":
                await self.job.scale(item.width)
                return 0

    async def _until_under_way(self, item: Round, wanted: int) -> None:
        """Wait until what was asked for has begun, if it comes to that."""
        deadline = time.monotonic() + MOMENT_SECONDS
        while time.monotonic() < deadline:
            status = await self.region.status()
            match item.moment:
                case "cut" if status.sequence_id >= wanted:
                    return
                case "rollback" if status.rollback_id >= wanted:
                    return
                case "width" if await self.job.resizes():
                    return
            await asyncio.sleep(_MOMENT_POLL_SECONDS)

    async def _strike(self, kill: Kill, after: float) -> str:
        """Strike after so long, and return what; note what is under way at that moment."""
        await asyncio.sleep(after)
        state = (await self.region.status()).state
        found = {
            "cut": state == "Draining",
            "rollback": state == "RollingBack",
            "width": await self.job.resizes(),
        }
        during = [name for name, is_so in found.items() if is_so]
        struck = await Killer(self.job, self.repository).kill(replace(kill, after=0.0))
        if struck is None:
            return "no pod"
        self.verdict.victims[kill.victim] += 1
        self.verdict.struck[kill.means] += 1
        self.verdict.during.update(during)
        return f"{struck} during {' and '.join(during) or 'nothing'}"

    async def _right(self, sent: int, rollback: int = 0) -> tuple[list[str], bool]:
        """Wait until all is at rest, and what was sent has come out; return what is wrong, and
        whether it came to that. `rollback`: one that must have been complete."""
        problems, comparison = list[str](), self.outcome.comparison
        deadline = time.monotonic() + ROUND_SECONDS
        while time.monotonic() < deadline:
            before = await self._at_rest(rollback)
            problems += await asyncio.to_thread(self.outcome.take)
            # Steps back are judged when no rollback came while they were read.
            calm = before is not None and before == await self._at_rest(rollback)
            if before is not None and calm and comparison.complete(sent):
                problems += comparison.round_ends(before - self._rollbacks)
                self._rollbacks = before
                return problems, True
            await asyncio.sleep(_POLL_SECONDS)
        lacking = comparison.lacking(sent) or "nothing"
        why = f"{await self.job.why()}; {await self.region.why()}"
        return [*problems, f"after {ROUND_SECONDS:.0f} s lacks {lacking}: {why}"], False

    async def _at_rest(self, rollback: int) -> int | None:
        """Return the number of the last rollback, None while something is under way.

        Cuts come all the time, so they are no reason to wait.
        """
        status = await self.region.status()
        back = status.completed_rollback_id
        if status.state == "RollingBack" or back != status.rollback_id or back < rollback:
            return None
        return back if await self.job.serves(self._width) else None

    async def _submit(self, *options: str) -> None:
        """Submit the application with the policy of now."""
        source = await asyncio.to_thread(written, self.folder, self._policy)
        await self.job.submit(source, "--param", f"folder={self.folder}", *options)

    async def _follows_policy(self) -> None:
        """Wait until the last edit is what runs. Raises NotServing."""
        deadline = time.monotonic() + START_SECONDS
        while await self.region.policy() != self._policy:
            if time.monotonic() > deadline:
                raise NotServing(f"roll_back_on is not {self._policy} after {START_SECONDS:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)
        await self.job.serving(self._width, START_SECONDS)


async def _surge(load: Load, wanted: bool) -> None:
    """Send more for a while, if that is wanted."""
    if wanted:
        load.rate = BACKLOG_RATE
        await asyncio.sleep(BACKLOG_SECONDS)
        load.rate = RATE


def written(folder: Path, policy: Policy) -> Path:
    """Write a form of the application into a folder, and return its file."""
    source, text = folder / "application.py", APPLICATION.read_text()
    line = 'ROLL_BACK_ON: Literal["never", "failure"] = "{}"'
    assert line.format("never") in text
    source.write_text(text.replace(line.format("never"), line.format(policy)))
    return source
