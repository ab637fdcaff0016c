"""One run from nothing to a result: environment, bundle, service, job, replay."""

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.live import Live

from examples.flights import batch, display
from examples.flights.children import ChildFailed, child, replay_command, service, succeed
from examples.flights.ending import Ending
from examples.flights.observation import Observations
from examples.flights.prometheus import Prometheus, dashboard_queries
from examples.flights.results import Results
from examples.flights.settings import (
    APPLICATION,
    JOB,
    NAMESPACE,
    SOURCE_TOPIC,
    WARM_POOL,
    Plan,
)
from examples.flights.submission import submit
from examples.flights.verdict import Outcome
from examples.flights.watcher import Watcher
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.resources import JOB as JOB_KIND
from streamgraft_common.resources import JobStatus
from streamgraft_local import Cluster, LocalError
from streamgraft_local.processes import CLUSTER_VARIABLE

_POLL_SECONDS = 0.3
_HEALTHY_SECONDS = 180
_PLAIN_EVERY_SAMPLES = 10


class Run:
    """Everything that a run needs; its parts end when the context of `stack` is left."""

    def __init__(self, plan: Plan, cluster: Cluster, console: Console) -> None:
        self.plan = plan
        self.cluster = cluster
        self.console = console
        self.folder = plan.settings.report
        self.bundle = self.folder / "flights.zip"

    async def outcome(self) -> Outcome:
        """Run it all; return what came of it. Raises ChildFailed and what the client raises."""
        async with AsyncExitStack() as stack:
            async with asyncio.TaskGroup() as start:
                start.create_task(self._environment())
                start.create_task(self._build())
            url = await self._service(stack)
            client = await stack.enter_async_context(
                KubeClient(load_config(self.cluster.kubeconfig))
            )
            config = replace(load_config(self.cluster.kubeconfig), server=self.cluster.adapter_url)
            adapter = await stack.enter_async_context(KubeClient(config))
            prometheus = await stack.enter_async_context(Prometheus(self.cluster.prometheus_url))
            results = stack.enter_context(Results(self.cluster.bootstrap_servers))
            await asyncio.to_thread(_create_topic, self.cluster.bootstrap_servers)
            await self._submit(client, url)
            await self._pool(client)
            watcher = Watcher(self.plan, client, adapter, prometheus, results)
            await watcher.begin()
            await self._replay(stack, watcher)
            await watcher.end()
            _, status = await watcher.region()
            empty = await prometheus.empty(dashboard_queries())
            expected = await asyncio.to_thread(batch.statistics, self.plan.flights)
            return Outcome(
                flights=len(self.plan.flights),
                peak=self.plan.peak,
                streamed=results.result,
                batch=expected,
                observations=watcher.seen,
                changes=status.changes,
                empty_queries=empty,
            )

    async def _environment(self) -> None:
        module = "examples.flights.environment"
        command = (sys.executable, "-m", module, str(self.plan.settings.base))
        async with child(command, None) as process:
            await succeed(process, "starting the environment", None)

    async def _build(self) -> None:
        # It needs the tools only, so it runs while the components start.
        while True:
            if tools := self._tools():
                break
            await asyncio.sleep(_POLL_SECONDS)
        command = Path(sys.executable).with_name("streamgraft")
        log = self.folder / "build.log"
        arguments = ("build", str(APPLICATION), "--out", str(self.bundle.absolute()))
        async with child((str(command), *arguments), log, tools) as process:
            assert process.stdout is not None
            await process.stdout.read()
            await succeed(process, "streamgraft build", log)

    def _tools(self) -> dict[str, str]:
        try:
            tools = self.cluster.state().tools
        except LocalError:
            return {}
        archive = {"STREAMGRAFT_CDS_ARCHIVE": str(tools.cds_archive)} if tools.cds_archive else {}
        jars = {"STREAMGRAFT_JARS": str(tools.driver_jars)}
        return {"STREAMGRAFT_JAVA": str(tools.java), **jars, **archive}

    def _marked(self) -> dict[str, str]:
        return {CLUSTER_VARIABLE: self.cluster.state().id}

    async def _service(self, stack: AsyncExitStack) -> str:
        log = self.folder / "service.log"
        return await stack.enter_async_context(service(self.plan.rate, log, self._marked()))

    async def _submit(self, client: KubeClient, url: str) -> None:
        bundle = await asyncio.to_thread(self.bundle.read_bytes)
        await submit(client, bundle, url, self.plan.batch_flights)
        last = ""
        async with asyncio.timeout(_HEALTHY_SECONDS):
            while True:
                found = await client.get(JOB_KIND.path(NAMESPACE, JOB))
                status = JobStatus.model_validate(found.get("status") or {})
                text = f"{status.phase}, {status.ready_pe_count} of {status.pe_count} PEs ready"
                if text != last:
                    self.console.print(f"Job {JOB}: {text} {status.message}".rstrip())
                    last = text
                if status.phase == "Failed":
                    raise ChildFailed(f"the job failed: {status.message}")
                if status.phase == "Healthy":
                    break
                await asyncio.sleep(_POLL_SECONDS)

    async def _pool(self, client: KubeClient) -> None:
        selector = f"{names.LABEL_POOL}={names.POOL_WARM}"
        path, waiting = f"/api/v1/namespaces/{NAMESPACE}/pods", -1
        async with asyncio.timeout(_HEALTHY_SECONDS):
            while waiting < WARM_POOL:
                found = (await client.get(path, labelSelector=selector))["items"]
                if (ready := sum(map(_is_ready, found))) != waiting:
                    waiting = ready
                    self.console.print(f"Warm pool: {waiting} of {WARM_POOL} pods wait")
                await asyncio.sleep(_POLL_SECONDS)

    async def _replay(self, stack: AsyncExitStack, watcher: Watcher) -> None:
        command = replay_command(self.plan.settings.clock, self.cluster.bootstrap_servers)
        log = self.folder / "replay.log"
        replayer = await stack.enter_async_context(child(command, log, self._marked()))
        assert replayer.stdout is not None
        ending = Ending(len(self.plan.flights))

        def done() -> bool:
            if not watcher.seen.samples:
                return False
            now = watcher.seen.samples[-1]
            widths = {now.width_wanted, now.width_serving}
            return ending.over(now.seconds, watcher.replayed, now.processed, widths)

        with Live(console=self.console, auto_refresh=False) as live:
            async with asyncio.TaskGroup() as group:
                group.create_task(watcher.follow(replayer.stdout))
                group.create_task(succeed(replayer, "the replayer", log))
                group.create_task(watcher.watch(done, lambda seen: self._show(live, seen)))

    def _show(self, live: Live, seen: Observations) -> None:
        if self.console.is_terminal:
            live.update(display.progress(self.plan, seen), refresh=True)
        elif seen.samples and len(seen.samples) % _PLAIN_EVERY_SAMPLES == 1:
            print(display.line(seen), flush=True)


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((it["type"], it["status"]) == ("Ready", "True") for it in conditions)


def _create_topic(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    topic = NewTopic(SOURCE_TOPIC, num_partitions=1, replication_factor=1)
    try:
        admin.create_topics([topic])[SOURCE_TOPIC].result(30)
    except KafkaException as error:
        raise ChildFailed(f"topic {SOURCE_TOPIC} can't be created: {error}") from error
