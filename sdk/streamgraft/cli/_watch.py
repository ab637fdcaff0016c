"""`streamgraft watch`: jobs, regions and processing elements, live."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected, not_installed, refuse_unknown
from streamgraft.cli._installation import signal_path
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft.cli._tables import table
from streamgraft_common import names
from streamgraft_common.kube import ApiError, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    JobStatus,
    ParallelRegionSpec,
    ParallelRegionStatus,
    ProcessingElementSpec,
    ProcessingElementStatus,
)

_INTERVAL_SECONDS = 1.0
_SIGNALS = ("total_lag", "utilization", "demand")
_MILLI = 1000


@dataclass(frozen=True)
class Snapshot:
    """Everything that one refresh shows."""

    jobs: list[Object]
    regions: list[Object]
    elements: list[Object]
    signals: dict[tuple[str, str], float] = field(default_factory=dict)
    """Values by metric and name of the region."""


def run(target: Target, job: str | None, once: bool, form: str) -> None:
    """Show the tables until interrupted, or once; for programs the objects as they are."""
    if form != "text":
        output.document(asyncio.run(_objects(target, job)), form)
        return
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(target, job, once))


async def _objects(target: Target, job: str | None) -> dict[str, Any]:
    async with connected(target) as cluster:
        seen = await first_snapshot(cluster, job)
    signals = [
        {"region": region, "metric": metric, "value": value}
        for (metric, region), value in seen.signals.items()
    ]
    kinds = {"jobs": seen.jobs, "regions": seen.regions, "processingElements": seen.elements}
    return {**kinds, "signals": signals}


async def _watch(target: Target, job: str | None, once: bool) -> None:
    async with connected(target) as cluster:
        tables = render(await first_snapshot(cluster, job))
        if once:
            Console().print(tables)
            return
        with Live(tables, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(_INTERVAL_SECONDS)
                try:
                    tables = render(await snapshot(cluster, job))
                    live.update(tables, refresh=True)
                except (ApiError, Unreachable) as error:  # it may come back: show what was last
                    live.update(Group(tables, f"\n{error}"), refresh=True)


async def first_snapshot(cluster: Cluster, job: str | None) -> Snapshot:
    """Read the present state. Raises CommandError if there is nothing of the job that is named."""
    seen = await snapshot(cluster, job)
    if job and not (seen.jobs or seen.regions or seen.elements):
        await refuse_unknown(cluster, job)
    return seen


async def snapshot(cluster: Cluster, job: str | None) -> Snapshot:
    """Read the present state of all jobs of the namespace, or of one."""
    jobs = await _items(cluster, JOB.path(cluster.namespace), job)
    regions = await _items(cluster, PARALLEL_REGION.path(cluster.namespace), job)
    elements = await _items(cluster, PROCESSING_ELEMENT.path(cluster.namespace), job)
    signals = {
        (metric, region): value
        for metric in (_SIGNALS if regions else ())
        for region, value in await _signal(cluster, metric)
    }
    return Snapshot(jobs, regions, elements, signals)


async def _items(cluster: Cluster, path: str, job: str | None) -> list[Object]:
    try:
        items: list[Object] = (await cluster.client.get(path))["items"]
    except ApiError as error:
        if not_installed(error):
            raise CommandError("this cluster doesn't know Streamgraft's resources") from error
        raise
    return [item for item in items if job in (None, _job_of(item))]


def _job_of(item: Object) -> str:
    return str(item["spec"].get("job") or item["metadata"]["name"])


async def _signal(cluster: Cluster, metric: str) -> list[tuple[str, float]]:
    try:
        listing = await cluster.client.get(signal_path(cluster.namespace, "*", metric))
    except ApiError:  # no adapter, or no data for it yet: the column stays empty
        return []
    return [
        (item["describedObject"]["name"], quantity(str(item["value"])))
        for item in listing.get("items", [])
    ]


def quantity(text: str) -> float:
    """Return the number of a metric's quantity, which is whole or in thousandths."""
    return float(text[:-1]) / _MILLI if text.endswith("m") else float(text)


def render(snapshot: Snapshot) -> Group:
    """Return the tables."""
    return Group(_jobs(snapshot), _regions(snapshot), _elements(snapshot))


def _jobs(snapshot: Snapshot) -> Table:
    rows = table("Jobs", "Job", "Phase", "Ready", "Message")
    for item in snapshot.jobs:
        status = JobStatus.model_validate(item.get("status") or {})
        ready = f"{status.ready_pe_count}/{status.pe_count}"
        rows.add_row(item["metadata"]["name"], status.phase, ready, status.message)
    return rows


def _regions(snapshot: Snapshot) -> Table:
    headings = ("Region", "Width", "Serving", "Max", "State", "Lag", "Utilization", "Demand")
    rows = table("Parallel regions", *headings)
    for item in snapshot.regions:
        spec = ParallelRegionSpec.model_validate(item["spec"])
        status = ParallelRegionStatus.model_validate(item.get("status") or {})
        name = item["metadata"]["name"]
        rows.add_row(
            name,
            str(spec.width),
            str(status.width),
            str(spec.max_width),
            _state(status),
            *_signal_cells(snapshot, name),
        )
    return rows


def _state(status: ParallelRegionStatus) -> str:
    true = [condition.type for condition in status.conditions if condition.status == "True"]
    if "Resizing" in true:
        return "resizing"
    if any(condition.reason == "RolledBack" for condition in status.conditions):
        return "rolled back"
    if "Asleep" in true:
        return "asleep"
    return "ready" if "Ready" in true else "starting"


def _signal_cells(snapshot: Snapshot, region: str) -> Iterator[str]:
    for metric in _SIGNALS:
        value = snapshot.signals.get((metric, region))
        yield "" if value is None else f"{value:,.0f}" if metric == "total_lag" else f"{value:.2f}"


def _elements(snapshot: Snapshot) -> Table:
    headings = ("PE", "Stage", "Channel", "Shards", "Held", "Phase", "Launches", "Message")
    rows = table("Processing elements", *headings)
    order = sorted(snapshot.elements, key=lambda item: (_job_of(item), item["spec"]["peId"]))
    for item in order:
        spec = ProcessingElementSpec.model_validate(item["spec"])
        status = ProcessingElementStatus.model_validate(item.get("status") or {})
        held = sorted(status.runtime.shards, key=int) if status.runtime else []
        rows.add_row(
            names.pe_name(spec.job, spec.pe_id),
            spec.stage_name,
            "" if spec.channel is None else str(spec.channel),
            ", ".join(map(str, spec.shards)),
            ", ".join(held),
            status.phase,
            str(status.launch_count),
            _message(status),
        )
    return rows


def _message(status: ProcessingElementStatus) -> str:
    """Return what is wrong with a PE, or else what it has to do more than was planned."""
    runtime = status.runtime
    if runtime is None or status.message or runtime.message:
        return status.message or (runtime.message if runtime else "")
    return f"a query per shard: {runtime.apart}" if runtime.apart else ""
