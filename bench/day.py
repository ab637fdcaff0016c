"""A day of the flights' load on a live job, under three policies: `make bench-day`.

The departures of a day (bench/traces.py) arrive 24 times as fast, so a day takes an hour: first
under our policy (`demand`, its price of a change and its warm pool by default), then under that of
the autoscaling paper (`lag-utilization`: its equations 3 to 5, section 4), then under an HPA by CPU
(deploy/hpa/cpu.yaml: the paper's baseline, section 3.4), which has no warm pool. All have the same
times for which a need must last. `CASES=96` lets the day pass 96 times as fast. Everything is real:
HPA, adapter, Prometheus, Kafka, Spark; starts of drivers and width changes take the time that they
take.

Forecasts need days, and go by quarters of an hour of the clock: there are none in this. Draws
docs/policies/day.svg; at another speed figures and picture have that in their names.
"""

import asyncio
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import yaml
from rich.console import Console

from bench import policies, report, traces
from bench.cluster import NAMESPACE, Deployed, application, running_cluster
from bench.traffic import Arrival, Load, Probe, create_topic, keys_by_group
from streamgraft_autoscaler.plot import Line, Panel, svg_plot
from streamgraft_autoscaler.replay import Trace
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, Unreachable, load_config
from streamgraft_common.kube.client import Object
from streamgraft_local import Cluster, ClusterSpec

SPEED = 24.0
DAY_SECONDS = 86_400.0
MINUTES = 1440
DATE = 1
"""Days after the first of January, which is a holiday."""
PEAK = 250.0
"""Records/s; of a channel at 80 % busy about 70, so that the peak needs four."""
REGION, WIDTH_MAX = "work", 6
NEED_LASTS_SECONDS = {"scaleUp": 10, "scaleDown": 30}
"""Before the HPA follows it; as the application asks for it."""
GROUPS = 12
KEYS_PER_GROUP = 4
POLICIES = {"demand": "demand", "paper": "lag-utilization", "cpu": "cpu"}
"""What the application calls them."""
COLOURS = {"demand": "#2ca02c", "paper": "#ff7f0e", "cpu": "#1f77b4"}
CPU = "cpu"
CPU_REQUEST = "250m"
"""Of a channel's pod, so the HPA wants 200m. A channel takes 190m at 30 records/s, 285m at 70 (80 %
busy), and 245m when it is saturated, with fewer and larger batches: with a request of more than
275m the HPA would not widen a region that is."""
HPAS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
CPU_HPA = Path(__file__).parents[1] / "deploy" / "hpa" / "cpu.yaml"
PREAMBLE = 30.0
"""Records/s until it is known what a channel can do, as it is of a job that runs for days."""
PREAMBLE_TIMEOUT_SECONDS = 300.0
FEW = 3 * PREAMBLE
SAMPLE_SECONDS = 1.0
WINDOW_SECONDS = 20
"""Of the metrics: shorter than the default, since the load changes faster."""
TEMPLATE = Path(__file__).parent / "applications" / "day.py"

console = Console()


@dataclass(frozen=True)
class Sample:
    """One look at the region. Seconds of the clock since the day began."""

    seconds: float
    rate: float
    """Records/s that are sent."""
    wanted: int
    """The width that the HPA asks for."""
    pods: int
    """Pods of the region's channels, those that start or end included."""
    pool: int
    """Pods of the warm pool."""


@dataclass(frozen=True)
class Course:
    """What became of the day under a policy."""

    samples: Sequence[Sample]
    delays: Sequence[tuple[float, float]]
    """When each record was sent (seconds of the clock since the day began), and how many seconds
    later it came out."""
    lost: int
    duplicated: int

    @property
    def changes(self) -> int:
        """Return how often the HPA asked for another width."""
        widths = [sample.wanted for sample in self.samples]
        return sum(after != before for before, after in pairwise(widths))

    def pod_seconds(self, pods_of: Callable[[Sample], int]) -> float:
        """Return the time that pods ran, all together."""
        return sum(
            pods_of(before) * (after.seconds - before.seconds)
            for before, after in pairwise(self.samples)
        )

    def longest_delays(self, step_seconds: float, steps: int) -> list[float]:
        """Return the longest delay of the records sent in each step; 0 without any."""
        found = [0.0] * steps
        for sent, delay in self.delays:
            step = int(sent / step_seconds)
            if step < steps:
                found[step] = max(found[step], delay)
        return found

    def violation_ratio(self, seconds: float) -> float:
        """Return the share of the day's seconds in which a record was sent that came out later than
        the objective allows."""
        longest = self.longest_delays(1.0, max(int(seconds), 1))
        return sum(delay > policies.OBJECTIVE_SECONDS for delay in longest) / len(longest)

    def figures(self, seconds: float) -> dict[str, float]:
        """Return the figures by name. `seconds`: how long the day took."""
        return {
            "pod_seconds": round(self.pod_seconds(lambda sample: sample.pods)),
            "pool_pod_seconds": round(self.pod_seconds(lambda sample: sample.pool)),
            "changes": self.changes,
            "width_max": max(sample.wanted for sample in self.samples),
            "delay_p99_s": round(report.percentile([it for _, it in self.delays], 0.99), 2),
            "delay_max_s": round(max(it for _, it in self.delays), 1),
            "violation_ratio": round(self.violation_ratio(seconds), 5),
            "lost": self.lost,
            "duplicated": self.duplicated,
        }


def load_of_the_day() -> Trace:
    """Return the departures of one day, per minute."""
    rates = traces.flights().rates[DATE * MINUTES : (DATE + 1) * MINUTES]
    return Trace("day", traces.MINUTE, rates).scaled(PEAK)


async def sampled(app: Deployed, seconds: float, rate: float) -> Sample:
    """Return how the region is now."""
    region, pods = await asyncio.gather(app.region(REGION), app.drivers())
    labels = [pod["metadata"]["labels"] for pod in pods]
    return Sample(
        seconds,
        rate,
        wanted=region["spec"]["width"],
        pods=sum(names.LABEL_REGION in of_pod for of_pod in labels),
        pool=sum(names.LABEL_POOL in of_pod for of_pod in labels),
    )


async def passed(app: Deployed, load: Load, day: Trace, speed: float) -> list[Sample]:
    """Let the day pass; return what was seen of it. A look that fails is left out."""
    found: list[Sample] = []
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < DAY_SECONDS / speed:
        load.rate = day.at(elapsed * speed)
        with suppress(Unreachable, TimeoutError):
            found.append(await sampled(app, elapsed, load.rate))
        if len(found) % 60 == 1:
            now = found[-1]
            console.print(
                f"{app.job}: {elapsed * speed / 3600:4.1f} h, {now.rate:3.0f} records/s, width"
                f" {now.wanted}, {now.pods} pods, {now.pool} in the pool"
            )
        await asyncio.sleep(SAMPLE_SECONDS)
    load.rate = 0.0
    return found


def delays(
    arrivals: Sequence[Arrival], sent_at: Sequence[float], first: int
) -> list[tuple[float, float]]:
    """Return when each record from `first` on was sent, in seconds since the first of them was, and
    how many seconds later it came out for the first time."""
    came: dict[int, float] = {}
    for arrival in arrivals:
        came.setdefault(arrival.id, arrival.at)
    return [
        (sent_at[number] - sent_at[first], at - sent_at[number])
        for number, at in came.items()
        if number >= first
    ]


def hpa_by_cpu(job: str) -> Object:
    """Return our example of an HPA by CPU, for the region of a job and with the day's times."""
    hpa: Object = yaml.safe_load(CPU_HPA.read_text())
    name = names.region_name(job, REGION)
    hpa["metadata"] |= {"name": name, "namespace": NAMESPACE}
    hpa["spec"]["scaleTargetRef"]["name"] = name
    hpa["spec"]["maxReplicas"] = WIDTH_MAX
    for direction, seconds in NEED_LASTS_SECONDS.items():
        behaviour = hpa["spec"]["behavior"][direction]
        behaviour["stabilizationWindowSeconds"] = seconds
        for policy in behaviour["policies"]:
            policy["periodSeconds"] = seconds
    return hpa


@asynccontextmanager
async def scaled(cluster: Cluster, app: Deployed, policy: str) -> AsyncIterator[None]:
    """Have an HPA of the benchmark's own if the job's region brings none: from when its only driver
    is warm, since one that starts takes CPU for two, and none leaves the second again."""
    if policy != CPU:
        yield
        return
    hpa = hpa_by_cpu(app.job)
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        await client.create(HPAS, hpa)
        try:
            yield
        finally:
            await client.delete(f"{HPAS}/{hpa['metadata']['name']}")


async def run(cluster: Cluster, folder: Path, policy: str, day: Trace, speed: float) -> Course:
    """Let the day pass under a policy."""
    source = folder / f"day{policy.replace('-', '')}.py"
    source.write_text(TEMPLATE.read_text().replace('] = "demand"', f'] = "{policy}"'))
    servers, name = cluster.bootstrap_servers, source.stem
    create_topic(servers, f"{name}-in", 1)
    keys = keys_by_group(GROUPS, KEYS_PER_GROUP)
    every_key = [key for same_rank in zip(*keys.values(), strict=True) for key in same_rank]
    resources = {"requests": {"cpu": CPU_REQUEST}}
    spec = {"processingElement": {"resources": resources}} if policy == CPU else {}
    async with application(cluster, source, spec) as app:
        with Probe(servers, f"{name}-out", 1) as probe:
            with Load(servers, f"{name}-in", every_key, PREAMBLE) as load:
                async with asyncio.timeout(PREAMBLE_TIMEOUT_SECONDS):
                    await app.settled(REGION, FEW)
                first = load.sent
                async with scaled(cluster, app, policy):
                    samples = await passed(app, load, day, speed)
            await probe.drained(load.sent)
    arrivals = probe.arrivals
    return Course(
        samples,
        delays(arrivals.items, load.sent_at, first),
        lost=arrivals.lost(load.sent),
        duplicated=arrivals.duplicated(),
    )


def picture(day: Trace, courses: Mapping[str, Course], speed: float) -> str:
    """Return the load, widths and delays of all policies as SVG, a point for each minute of the
    day."""
    step = traces.MINUTE / speed

    def lines(values_of: Callable[[Course], Sequence[float]], steps: bool) -> list[Line]:
        return [
            Line(name, COLOURS[name], values_of(course), steps) for name, course in courses.items()
        ]

    def widths(course: Course) -> list[float]:
        seen = [sample.seconds for sample in course.samples]
        indices = (bisect_right(seen, minute * step) - 1 for minute in range(MINUTES))
        return [float(course.samples[max(index, 0)].wanted) for index in indices]

    panels = [
        Panel("Records/s", [Line("load", "#7f7f7f", day.rates)]),
        Panel("Channels", lines(widths, True)),
        Panel("Longest delay, s", lines(lambda it: it.longest_delays(step, MINUTES), False)),
    ]
    return svg_plot(panels, [minute * traces.MINUTE for minute in range(MINUTES)])


def write(day: Trace, courses: Mapping[str, Course], speed: float) -> None:
    """Write the figures and the plot of the policies that have had their day."""
    found = {
        f"{figure}.{name}": value
        for name, course in courses.items()
        for figure, value in course.figures(DAY_SECONDS / speed).items()
    }
    settings = {
        "speed": speed,
        "records_per_s_at_peak": PEAK,
        "cpu_request": CPU_REQUEST,
        "objective_s": policies.OBJECTIVE_SECONDS,
        "metrics_window_seconds": WINDOW_SECONDS,
        "hpa_sync_seconds": ClusterSpec().hpa_sync_seconds,
        "trigger_seconds": 1.0,
    }
    name = "day" if speed == SPEED else f"day-{speed:g}"
    report.write(name, settings, found)
    (policies.PLOTS / f"{name}.svg").write_text(picture(day, courses, speed))


async def main() -> None:
    """Let the day pass under each policy on a fresh environment; write what is there after each,
    since one takes an hour and the next may fail."""
    speed = float(sys.argv[1]) if len(sys.argv) > 1 else SPEED
    day = load_of_the_day()
    courses: dict[str, Course] = {}
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as folder:
        async with running_cluster(Path(folder) / "cluster", WINDOW_SECONDS) as cluster:
            for name, policy in POLICIES.items():
                courses[name] = await run(cluster, Path(folder), policy, day, speed)
                write(day, courses, speed)


if __name__ == "__main__":
    asyncio.run(main())
