"""How a plan is shown: for people, and as JSON."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import Any

from pydantic.alias_generators import to_camel
from rich.table import Table

from streamgraft.cli._plan_compare import Outlook, PePlan
from streamgraft.cli._plan_hops import Way, ways
from streamgraft.cli._plan_queries import StageQueries, stage_queries
from streamgraft.cli._tables import table
from streamgraft_common.content import Change
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_operator.graph import counted_topics
from streamgraft_operator.manifests.pod_settings import DEFAULT_HEAP_MB, DEFAULT_RESOURCES

_MARKS = {
    Change.IDENTICAL: "=",
    Change.METADATA_ONLY: ".",
    Change.IN_PLACE: "~",
    Change.RESTART: "!",
    Change.ADDED: "+",
    Change.REMOVED: "-",
}
_STYLES = {
    Change.IN_PLACE: "yellow",
    Change.RESTART: "red",
    Change.ADDED: "green",
    Change.REMOVED: "magenta",
}


def pes(plan: Outlook) -> Table:
    """Return a line for each PE; channels of a stage to which the same happens share one."""
    rows = table(_title(plan), "", "PE", "Stage", "Channels", "Operators", "Slots", "Change")
    for group in _groups(plan.pes):
        first = group[0]
        why = f": {', '.join(first.differing)}" if first.differing else ""
        rows.add_row(
            _MARKS[first.change],
            _ids(group),
            first.metadata.stage_name,
            _channels(group),
            ", ".join(first.metadata.operators),
            str(first.metadata.slots),
            first.change + why,
            style=_STYLES.get(first.change, ""),
        )
    return rows


def notes(plan: Outlook) -> Iterator[str]:
    """Yield what else is worth knowing, and the sum of it all."""
    for region in plan.regions:
        yield (
            f"Region {region.region.name}: width {region.width} of {region.region.max_width},"
            f" PEs per channel: {region.stages}"
        )
    yield from map(str, plan.outcomes)
    yield from _code(plan)
    yield from (str(stage) for stage in _queries(plan) if stage.mode != "one")
    yield from _slots(plan)
    yield from _imports(plan)
    yield from _triggers(plan)
    yield from map(str, _ways(plan))
    yield from _delivery(plan)
    given = _resources(plan)
    shown = "; ".join(
        f"{kind} {', '.join(f'{name} {value}' for name, value in values.items())}"
        for kind, values in given.items()
        if values
    )
    yield f"Each PE: {shown or 'no resources'}; heap {plan.settings.heap_mb or DEFAULT_HEAP_MB} MiB"
    size = plan.sizing
    yield (
        f"Sizing: {size.min_threads} threads always busy, {size.max_threads} at most;"
        f" {size.fewest} to {size.most} PEs are possible (one channel of each region),"
        f" {size.pe_count} would do"
    )
    if plan.cpu:
        yield plan.cpu.note(size.min_threads)
    counts = plan.counts
    yield "Plan: " + ", ".join(f"{counts[change]} {change}" for change in Change)
    if plan.restarts:
        yield "PEs that run would be restarted."
    elif plan.exists:
        yield "Nothing that runs would be restarted."


def _code(plan: Outlook) -> Iterator[str]:
    """Yield how PEs that run come to other code."""
    fixed = plan.submission.bundle.adl.fixed_code
    for change, how in (
        (Change.IN_PLACE, "swapped in running drivers, each shard after a batch"),
        (Change.RESTART, f"by a restart, since no process can load another {', '.join(fixed)}"),
    ):
        concerned = (pe for pe in plan.pes if pe.change is change and "code" in pe.differing)
        stages = sorted({pe.metadata.stage_name for pe in concerned})
        if stages and (fixed or change is Change.IN_PLACE):
            yield f"Code of {', '.join(stages)}: {how}"


def document(plan: Outlook, compared: bool) -> dict[str, Any]:
    """Return all of it as a JSON value; `compared`: whether a cluster was asked."""
    return {
        "job": plan.submission.job,
        "namespace": plan.submission.namespace,
        "compared": compared,
        "exists": plan.exists,
        "restart": plan.restarts,
        "counts": {change.value: plan.counts[change] for change in Change},
        "pes": [
            {
                "id": pe.metadata.pe_id,
                "stage": pe.metadata.stage_name,
                "region": pe.metadata.region,
                "channel": pe.metadata.channel,
                "operators": pe.metadata.operators,
                "inputs": [port.topic for port in pe.metadata.inputs],
                "outputs": [port.topic for port in pe.metadata.outputs],
                "slots": pe.metadata.slots,
                "change": pe.change.value,
                "differing": list(pe.differing),
            }
            for pe in plan.pes
        ],
        "regions": [
            {
                "name": region.region.name,
                "width": region.width,
                "maxWidth": region.region.max_width,
                "stages": region.stages,
            }
            for region in plan.regions
        ],
        "queries": [
            {
                "stage": stage.stage,
                "mode": stage.mode,
                "why": stage.why,
                "queries": stage.queries,
                "longestTriggerSeconds": stage.longest_seconds or None,
            }
            for stage in _queries(plan)
        ],
        "ways": [
            {to_camel(name): value for name, value in asdict(way).items()} for way in _ways(plan)
        ],
        "outcomes": [asdict(item) for item in plan.outcomes],
        "resources": _resources(plan),
        "heapMb": plan.settings.heap_mb or DEFAULT_HEAP_MB,
        "sizing": {to_camel(name): value for name, value in asdict(plan.sizing).items()},
        "cpu": asdict(plan.cpu) if plan.cpu else None,
    }


def _title(plan: Outlook) -> str:
    what = "a change of it" if plan.exists else "it would be new"
    return f"Job {plan.submission.job} in namespace {plan.submission.namespace}: {what}"


def _queries(plan: Outlook) -> list[StageQueries]:
    widths = {region.region.name: region.width for region in plan.regions}
    return stage_queries(_staying(plan), plan.submission.bundle.adl.operators, widths)


def _staying(plan: Outlook) -> list[PeMetadata]:
    return [pe.metadata for pe in plan.pes if pe.change is not Change.REMOVED]


def _slots(plan: Outlook) -> Iterator[str]:
    """Yield why PEs in real-time mode have so many slots, if nobody has said a number."""
    spec = plan.submission.spec
    if spec.threading.model != "manual" or spec.processing_element.slots is not None:
        return
    real_time = {pe.stage_name: pe for pe in _staying(plan) if pe.real_time}
    for name, pe in sorted(real_time.items()):
        whole = counted_topics([pe])
        unknown = sorted(whole - plan.submission.source_partitions.keys())
        seen = f"; those of {', '.join(unknown)} are counted when it starts" if unknown else ""
        slots = "1 slot" if pe.slots == 1 else f"{pe.slots} slots"
        yield f"Stage {name}: {slots}, as many as partitions are read in real time{seen}"


def _imports(plan: Outlook) -> Iterator[str]:
    """Yield which PEs in real-time mode get their records from micro-batches after all."""
    operators = plan.submission.bundle.adl.operators
    whole = {stream for item in operators if item.kind == "import" for stream in item.outputs}
    splits = [item for item in operators if item.kind == "split" and whole & {*item.inputs}]
    imported = whole.union(*(item.outputs for item in splits))
    for name, pe in sorted({pe.stage_name: pe for pe in _staying(plan) if pe.real_time}.items()):
        if streams := sorted({port.stream for port in pe.inputs} & imported):
            yield (
                f"Stage {name}: {', '.join(streams)} comes by a hop and with triggers, since"
                " imports are not read in real time"
            )


def _triggers(plan: Outlook) -> Iterator[str]:
    """Yield how often PEs in micro-batches look for records."""
    stages = sorted(
        (stage for stage in _queries(plan) if not stage.real_time),
        key=attrgetter("longest_seconds"),
    )
    groups = [list(group) for _, group in groupby(stages, attrgetter("longest_seconds"))]
    for group in groups:
        named = f" of {', '.join(stage.stage for stage in group)}" if len(groups) > 1 else ""
        yield (
            f"Triggers{named}: at most {round(group[0].longest_seconds, 2):g} s apart, and as near"
            " as half of a core's time allows, while CPU is not short"
        )


def _ways(plan: Outlook) -> list[Way]:
    return ways(_staying(plan), _queries(plan))


def _delivery(plan: Outlook) -> Iterator[str]:
    """Yield what a crash does to records that were about to be written."""
    yield "Delivery: exactly once between PEs and into Kafka"
    operators = plan.submission.bundle.adl.operators
    quick = {item.name for item in operators if item.delivery == "at_least_once"}
    real_time = [pe for pe in _staying(plan) if pe.real_time]
    if waiting := sorted({pe.stage_name for pe in real_time if not quick & {*pe.operators}}):
        yield f"Real time, commits every 10 ms: {', '.join(waiting)}"
    if stages := sorted({pe.stage_name for pe in real_time if quick & {*pe.operators}}):
        yield (
            f"Delivery: at least once from PEs in real-time mode: {', '.join(stages)};"
            " repeats are dropped by PEs of this job that follow, not by others"
        )
    loose = [item for item in operators if item.kafka and item.kafka.delivery == "at_least_once"]
    if loose:
        yield f"Delivery: at least once into sinks: {', '.join(item.name for item in loose)}"
    if functions := [item.name for item in operators if item.kind == "sink"]:
        yield f"Delivery: at least once to functions of sinks: {', '.join(functions)}"


def _resources(plan: Outlook) -> dict[str, dict[str, str]]:
    given = plan.settings.resources
    if given is None:
        return dict(DEFAULT_RESOURCES)
    return {"requests": given.requests, "limits": given.limits}


def _groups(pes: Iterable[PePlan]) -> list[list[PePlan]]:
    def kind(pe: PePlan) -> tuple[bool, str, str, tuple[str, ...]]:
        outside = pe.metadata.region is None
        return not outside, pe.metadata.stage_name, pe.change.value, pe.differing

    groups = [list(group) for _, group in groupby(sorted(pes, key=kind), kind)]
    return sorted(groups, key=lambda group: group[0].metadata.pe_id)


def _ids(group: list[PePlan]) -> str:
    ids = [pe.metadata.pe_id for pe in group]
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]}, …, {ids[-1]}"


def _channels(group: list[PePlan]) -> str:
    channels = [pe.metadata.channel for pe in group if pe.metadata.channel is not None]
    if not channels:
        return ""
    if len(channels) == 1:
        return str(channels[0])
    return f"{len(channels)}: {channels[0]} to {channels[-1]}"
