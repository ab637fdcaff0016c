"""One job's life, timed, and what the operator needed for it."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import aiohttp
import psutil

from bench import lifecycle_failures, lifecycle_handover, raw_limit
from bench.lifecycle_handover import HandOver
from bench.pipelines import REGION, bundle, pipelines
from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT, JobSpec
from streamgraft_local import Cluster

NAMESPACE = "default"
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 300.0
OPERATOR_IDLE_SECONDS = 65
"""How long idle CPU is measured: a resync of the operator is in it."""
SETTLE_SECONDS = 10
"""For what a job that has just become healthy, or an operator that has just started, has to do."""
_KINDS = (PARALLEL_REGION, PROCESSING_ELEMENT, POD, SERVICE, CONFIG_MAP)
_WRITES = re.compile(r'^streamgraft_operator_api_writes_total\{kind="(\w+)",verb="(\w+)"\} (\S+)$')

Writes = dict[str, int]
"""API writes by `verb kind`."""


@dataclass(frozen=True)
class OperatorCost:
    """What the operator needs. CPU in percent of one core."""

    peak_rss_mb: float
    idle_cpu_percent: float


@dataclass(frozen=True)
class Run:
    """One job from its creation to its end. Seconds from the request."""

    pes: int
    limit: raw_limit.Limit
    submitted_s: float
    healthy_s: float
    recovered_s: list[float]
    """From each failure of a pod until the job was at full health again."""
    terminated_s: float
    writes: Writes
    """Of the operator, until the job was healthy."""
    operator: OperatorCost
    hand_over: HandOver | None
    """Between two replicas, with this job at rest."""


@dataclass(frozen=True)
class WidthChange:
    """One width change of a wide region."""

    from_width: int
    to_width: int
    served_s: float
    """From the request until the new width served and the job was at full health."""
    writes: Writes
    touched: int
    """Objects of the job, pods included, that were created, changed or deleted."""

    def widens(self) -> bool:
        """Tell whether the region got wider."""
        return self.to_width > self.from_width


class LifeCycle:
    """Runs jobs on a cluster with a hollow node."""

    def __init__(self, cluster: Cluster, client: KubeClient, folder: Path) -> None:
        self._cluster = cluster
        self._client = client
        self._folder = folder

    async def ready(self) -> None:
        """Wait for the service account that a fresh control plane makes: pods need it."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await self._client.find(path):
                await asyncio.sleep(POLL_SECONDS)

    async def run(self, size: int, *, rest: bool) -> Run:
        """Measure the raw limit, then a job of `size` pipelines of `size` operators.

        With `rest` also what the operator needs, and how it is handed over, while nothing happens.
        """
        adl = pipelines(size, size, size)
        spec = self._spec(adl, f"n{size}")
        await asyncio.to_thread(self._cluster.stop, "operator")
        limit = await raw_limit.measure(self._client, NAMESPACE, adl, spec)
        await asyncio.to_thread(self._cluster.start, "operator")
        name = f"n{size}"
        before = await self._writes()
        begin = time.perf_counter()
        await self._submit(name, spec)
        await self._phase(name, "Submitted", "Healthy")
        submitted = time.perf_counter() - begin
        job = await self._phase(name, "Healthy")
        healthy = time.perf_counter() - begin
        writes = _difference(before, await self._writes())
        cost = await self._cost(rest)
        hand_over = await self._hand_over(name) if rest else None
        pes = job["status"]["peCount"]
        recovered = await lifecycle_failures.measure(self._client, NAMESPACE, name, pes)
        begin = time.perf_counter()
        await self._delete(name)
        terminated = time.perf_counter() - begin
        return Run(pes, limit, submitted, healthy, recovered, terminated, writes, cost, hand_over)

    async def width_changes(self, channels: int) -> list[WidthChange]:
        """Widen a region of `channels` channels by one, and narrow it again."""
        name = "wide"
        await self.started(name, pipelines(channels, 1, 2 * channels))
        await self._serving(name, channels)
        changes = [await self._change(name, channels, channels + 1)]
        changes.append(await self._change(name, channels + 1, channels))
        await self._delete(name)
        return changes

    async def doublings(self, widest: int) -> list[WidthChange]:
        """Double the width of a region from one channel on, and halve it again."""
        name = "doubled"
        await self.started(name, pipelines(1, 1, widest))
        await self._serving(name, 1)
        widths = [1 << power for power in range(widest.bit_length())]
        there_and_back = pairwise([*widths, *reversed(widths[:-1])])
        changes = [await self._change(name, old, new) for old, new in there_and_back]
        await self._delete(name)
        return changes

    async def started(self, name: str, adl: Adl) -> None:
        """Submit an application, and wait until its job is healthy."""
        await self._submit(name, self._spec(adl, name))
        await self._phase(name, "Healthy")

    async def _change(self, job: str, old: int, new: int) -> WidthChange:
        before, versions = await self._writes(), await self._versions(job)
        path = PARALLEL_REGION.path(NAMESPACE, names.region_name(job, REGION))
        begin = time.perf_counter()
        await self._client.patch(f"{path}/scale", {"spec": {"replicas": new}})
        await self._serving(job, new)
        await self._phase(job, "Healthy")
        served = time.perf_counter() - begin
        writes = _difference(before, await self._writes())
        after = await self._versions(job)
        touched = sum(versions.get(key) != after.get(key) for key in versions.keys() | after.keys())
        return WidthChange(old, new, served, writes, touched)

    def _spec(self, adl: Adl, name: str) -> JobSpec:
        file = self._folder / f"{name}.zip"
        file.write_bytes(bundle(adl))
        return JobSpec.model_validate(
            {"bundle": {"file": str(file)}, "fusion": {"type": "legacy"}},
        )

    async def _submit(self, name: str, spec: JobSpec) -> None:
        body = {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": {"name": name}}
        await self._client.create(JOB.path(NAMESPACE), {**body, "spec": spec.to_wire()})

    async def _phase(self, name: str, *phases: str) -> Object:
        path = JOB.path(NAMESPACE, name)
        return await self._until(path, lambda job: (job.get("status") or {}).get("phase") in phases)

    async def _serving(self, job: str, width: int) -> None:
        def holds(region: Object) -> bool:
            status = region.get("status") or {}
            conditions = {item["type"]: item["status"] for item in status.get("conditions", [])}
            return status.get("width") == width and conditions.get("Resizing") == "False"

        await self._until(PARALLEL_REGION.path(NAMESPACE, names.region_name(job, REGION)), holds)

    async def _until(self, path: str, holds: Callable[[Object], bool]) -> Object:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds(item := await self._client.get(path)):
                await asyncio.sleep(POLL_SECONDS)
        return item

    async def _delete(self, name: str) -> None:
        """Delete a job and wait until all that belongs to it is gone."""
        path = JOB.path(NAMESPACE, name)
        await self._client.delete(path)
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                while await self._client.get(path):
                    await asyncio.sleep(POLL_SECONDS)
            except NotFound:
                pass
        if left := await self._versions(name):
            raise AssertionError(f"{len(left)} objects outlive the job, as {next(iter(left))}")

    async def _versions(self, job: str) -> dict[tuple[str, str], str]:
        """Return the resource version of everything that belongs to a job."""
        found = {}
        for kind in _KINDS:
            selector = {"labelSelector": f"{names.LABEL_JOB}={job}"}
            listing = await self._client.list(kind.path(NAMESPACE), selector, metadata_only=True)
            for item in listing["items"] or ():
                metadata = item["metadata"]
                found[kind.kind, metadata["name"]] = metadata["resourceVersion"]
        return found

    async def _writes(self) -> Writes:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self._cluster.operator_url}/metrics") as answer,
        ):
            lines = (await answer.text()).splitlines()
        found = filter(None, map(_WRITES.match, lines))
        return {f"{match[2]} {match[1]}": int(float(match[3])) for match in found}

    async def _hand_over(self, job: str) -> HandOver:
        service = names.pe_name(job, 0)
        found = await lifecycle_handover.measure(self._cluster, self._client, NAMESPACE, service)
        await asyncio.sleep(SETTLE_SECONDS)
        return found

    async def _cost(self, idle: bool) -> OperatorCost:
        """Return what the operator needs; measuring idle CPU takes a while."""
        process = psutil.Process(self._pid())
        percent = float("nan")
        if idle:
            await asyncio.sleep(SETTLE_SECONDS)
            before, begin = _cpu_seconds(process), time.perf_counter()
            await asyncio.sleep(OPERATOR_IDLE_SECONDS)
            percent = 100 * (_cpu_seconds(process) - before) / (time.perf_counter() - begin)
        return OperatorCost(_peak_rss_mb(process.pid), percent)

    def _pid(self) -> int:
        status = next(item for item in self._cluster.status() if item.name == "operator")
        if status.pid is None:
            raise AssertionError("the operator does not run")
        return status.pid


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak_rss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in text.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


def _difference(before: Writes, after: Writes) -> Writes:
    counts = {what: count - before.get(what, 0) for what, count in after.items()}
    return {what: count for what, count in counts.items() if count}
