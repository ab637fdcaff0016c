"""`streamgraft top`: how busy processing elements are, and how much waits for them."""

import asyncio
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import connected
from streamgraft.cli._options import Target
from streamgraft.cli._tables import table
from streamgraft.cli._watch import Snapshot, first_snapshot
from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import ProcessingElementSpec, ProcessingElementStatus


@dataclass(frozen=True)
class Load:
    """One PE."""

    pe: str
    stage: str
    channel: int | None
    phase: str
    shards: int
    busy: float | None
    """Of its busiest shard, 0 to 1; None: not reported yet."""
    waiting: int | None
    """Records; None: not reported yet."""


def run(target: Target, job: str | None, form: str) -> None:
    """Print the PEs of a namespace or of one job, those with the most to do first."""
    loads = loads_of(asyncio.run(_read(target, job)))
    if form == "text":
        Console().print(_table(loads))
    else:
        output.document([asdict(load) for load in loads], form)


async def _read(target: Target, job: str | None) -> Snapshot:
    async with connected(target) as cluster:
        return await first_snapshot(cluster, job)


def loads_of(seen: Snapshot) -> list[Load]:
    """Return the PEs, the busiest first, of equally busy ones that for which most waits."""
    found = [_load(item) for item in seen.elements]
    return sorted(found, key=lambda load: (-(load.busy or 0), -(load.waiting or 0), load.pe))


def _load(item: Object) -> Load:
    spec = ProcessingElementSpec.model_validate(item["spec"])
    status = ProcessingElementStatus.model_validate(item.get("status") or {})
    shards = list(status.runtime.shards.values()) if status.runtime else []
    busy = [shard.busy for shard in shards if shard.busy is not None]
    waiting = [shard.lag for shard in shards if shard.lag is not None]
    return Load(
        pe=names.pe_name(spec.job, spec.pe_id),
        stage=spec.stage_name,
        channel=spec.channel,
        phase=status.phase,
        shards=len(shards),
        busy=max(busy, default=None),
        waiting=sum(waiting) if waiting else None,
    )


def _table(loads: list[Load]) -> Table:
    rows = table("Load", "PE", "Stage", "Channel", "Phase", "Shards", "Busiest shard", "Waiting")
    for load in loads:
        rows.add_row(
            load.pe,
            load.stage,
            "" if load.channel is None else str(load.channel),
            load.phase,
            str(load.shards),
            "" if load.busy is None else f"{load.busy:.0%}",
            "" if load.waiting is None else f"{load.waiting:,}",
        )
    return rows
