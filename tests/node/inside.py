"""What happens on the node; runs within its namespaces: `python -m tests.node.inside WORK`.

Writes WORK/figures.json.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.chart.release import left_over
from tests.node import flights, image, place
from tests.node.job import Job
from tests.node.node import Node
from tests.node.release import BROKERS, JOBS, PROMETHEUS, Release

from bench.traffic import Load, Probe, create_topic, keys_by_group
from dashboards.generate import answered
from examples.flights.prometheus import Prometheus
from streamgraft_common.kube import KubeClient, load_config

_APPLICATION = Path(__file__).with_name("application.py")
_NAME, _REGION = "numbers", "work"
_SOURCE, _SINK, _WIDEST = "node-in", "node-out", 4
_RATE = 300.0
"""Records a second: what keeps channels busy for less than a twentieth of the time says nothing of
what they can process, and the HPA would hold the width."""
_SAVEPOINT = "numbers-kept"
"""It outlives its job."""
_NEXT = "next"
"""Tag that the image has from the chart's upgrade on."""

Figures = dict[str, float]


async def play(node: Node, work: Path) -> Figures:
    """Install, run a job, disturb it, uninstall; return the figures."""
    figures: Figures = {}
    async with KubeClient(load_config(node.kubeconfig)) as client:
        release, job = Release(node, client), Job(node, client, _APPLICATION, _NAME, _REGION)
        await release.prepare(work / "volumes")
        with timed("install_s", figures):
            await release.install()
        create_topic(BROKERS, _SOURCE, 4)
        create_topic(BROKERS, _SINK, _WIDEST)
        await job.submit()
        keys = [key for group in keys_by_group(_WIDEST, 4).values() for key in group]
        with Probe(BROKERS, _SINK, _WIDEST) as probe:
            with Load(BROKERS, _SOURCE, keys, _RATE) as load:
                await disturb(node, release, job, figures)
            await probe.drained(load.sent)
        figures["records"] = load.sent
        figures["lost"] = probe.arrivals.lost(load.sent)
        await job.command("savepoint", "create", _NAME, "--name", _SAVEPOINT)
        await job.cancel()
        figures |= await flights.play(node, client, work, say)
        topics = topics_left(BROKERS)
        await job.command("savepoint", "delete", _SAVEPOINT)
        await release.uninstall()
        left = topics + await left_over(client)
        for name in left:
            say(f"left over: {name}")
        figures["left_over"] = len(left)
    return figures


async def disturb(node: Node, release: Release, job: Job, figures: Figures) -> None:
    """Do to a running job what happens to jobs."""
    with timed("width_change_s", figures):
        await job.scale(_WIDEST)
    figures["pod_start_s_cold"] = await reported("a pod is killed", job.kill_channel())
    await reported("the job is healthy again", job.healthy())
    await job.fill_pool(1)
    figures["pod_start_s_warm"] = await reported("a pod is killed, one is warm", job.kill_channel())
    await job.healthy()
    await job.fill_pool(0)
    say("containerd is killed")
    await asyncio.to_thread(node.kill_containerd)
    say("the kubelet is restarted")
    await asyncio.to_thread(node.restart_kubelet)
    await job.healthy()
    await reported("the HPA narrows the region", job.autoscale())
    await reported("the pods of PEs are evicted", job.drain(place.NODE))
    await reported("Prometheus answers all dashboards", dashboards_answered())
    before = {pod["metadata"]["uid"] for pod in await job.pods()}
    node.tag(f"{image.REPOSITORY}:{image.TAG}", f"{image.REPOSITORY}:{_NEXT}")
    values = ("--set", f"image.tag={_NEXT}", "--set", "operator.logLevel=DEBUG")
    await reported("the chart is upgraded", release.upgrade(*values))
    await job.healthy()
    after = {pod["metadata"]["uid"] for pod in await job.pods()}
    assert before == after, "an upgrade of the chart started the job's pods anew"
    await reported("the width is set by hand", job.scale(2))


async def dashboards_answered() -> None:
    """Ask the chart's Prometheus what Grafana would."""
    chosen = {"namespace": JOBS, "job": _NAME, "region": _REGION, "pe": ".+"}
    async with Prometheus(PROMETHEUS) as prometheus:
        silent = await prometheus.empty(answered({**chosen, "__rate_interval": "5m"}))
    assert silent == [], silent


def topics_left(brokers: str) -> list[str]:
    """Return topics that are not the user's."""
    topics = AdminClient({"bootstrap.servers": brokers}).list_topics(timeout=30).topics
    known = (_SOURCE, _SINK, *flights.TOPICS)
    return sorted(name for name in topics if name not in known and name[0] != "_")


async def reported(what: str, doing: Awaitable[object]) -> float:
    """Say what was done and how long it took; return the seconds."""
    began = time.monotonic()
    await doing
    seconds = round(time.monotonic() - began, 2)
    say(f"{what}: {seconds} s")
    return seconds


@contextmanager
def timed(figure: str, figures: Figures) -> Iterator[None]:
    """Note how long it takes, in seconds."""
    began = time.monotonic()
    yield
    figures[figure] = round(time.monotonic() - began, 2)
    say(f"{figure}: {figures[figure]}")


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def main() -> None:
    """Play it all in the namespaces that `python -m tests.node` made."""
    work = Path(sys.argv[1])
    place.furnish(work)
    node = Node(work)
    began = time.monotonic()
    node.start(sorted(work.glob("*.tar")))
    say(f"the node is ready after {time.monotonic() - began:.1f} s")
    figures = asyncio.run(play(node, work))
    (work / "figures.json").write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
