"""What a savepoint sees of its job: stages in the order of the graph, and how far each is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from streamgraft_common import names
from streamgraft_common.conditions import is_true
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import CheckpointRepository, SavedStage, SavepointSpec
from streamgraft_common.restore import united_state
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.kit.parsed import (
    job_status,
    pe_spec,
    pe_status,
    region_spec,
    region_status,
    savepoint_spec,
    savepoint_status,
)
from streamgraft_operator.kit.rollbacks import is_going
from streamgraft_operator.pe.pods import pe_view, pod_view
from streamgraft_operator.pe.view import PeView, ReleaseView
from streamgraft_operator.savepoint.part import Part
from streamgraft_operator.savepoint.step import OVER
from streamgraft_operator.savepoint.view import JobFacts, StageView


@dataclass(frozen=True)
class JobStages:
    """A job as a savepoint sees it."""

    stages: tuple[StageView, ...]
    part: Part
    owners: Mapping[Key, list[int]]
    """PE → shards that it is to copy."""
    facts: JobFacts
    alive: frozenset[str]
    """PEs, those that are gone included, that are seen to have a pod which may run."""
    waiting_for: str
    """What has to end before the first stage may be stopped."""
    abandoned: str
    """Why nobody is left who reads to the end, or copies, what some PE had."""

    def with_drained(self, drained: frozenset[str]) -> tuple[StageView, ...]:
        """Return the stages, those in `drained` marked."""
        return tuple(replace(item, drained=item.stage.name in drained) for item in self.stages)


def job_stages(caches: Caches, job: Object, part: Part, savepoint: Object) -> JobStages:
    """Return what there is of a job, or of one region of it."""
    wanted = savepoint_spec(savepoint)
    key = key_of(job)
    pes = [_Pe(item, pe_view(caches, item)) for item in caches.processing_elements_by_job.get(key)]
    regions = {region_spec(item).region: item for item in caches.regions_by_job.get(key)}
    owners: dict[Key, list[int]] = {}
    stages, not_running = [], []
    for stage in part.stages:
        members = [item for item in pes if item.view_of(stage.name)]
        region = regions.get(stage.region or "")
        found = _owners(members, region)
        owners |= found
        not_running.append(_not_running(stage, members, wanted))
        # One that was deleted may come anew with the shards that it had.
        there = sum(map(len, found.values())) == stage.shards
        view = StageView(
            stage=stage,
            commits=stage.name in part.commits,
            upstream=part.upstream.get(stage.name, frozenset()),
            stopped=there and all(_stopped(item.view) for item in members),
            clean=is_clean(_releases(members, found), region_status(region).epoch if region else 0),
            running=not not_running[-1],
        )
        copied = _with_copies(view, members, savepoint["metadata"]["uid"])
        owning = [pe for pe in members if key_of(pe.item) in found]
        done = there and all(_has_committed(pe, savepoint) for pe in owning)
        stages.append(replace(copied, committed=done))
    if orphans := _orphans(caches, key):
        stages = [replace(view, stopped=False) for view in stages]
    asleep = _asleep(regions, part)
    waits = (
        f"region {asleep} to be woken (set its width to 1)" if asleep else "",
        _other_savepoint(caches, key, savepoint),
        _resizing(regions, wanted.region),
        f"pods {', '.join(orphans)} to end" if orphans else "",
        *not_running,
    )
    return JobStages(
        stages=tuple(stages),
        part=part,
        owners=owners,
        facts=_facts(caches, job, part, regions),
        alive=frozenset(pe.item["metadata"]["name"] for pe in pes if pe.view.pod_alive).union(
            orphans.values()
        ),
        waiting_for=next(filter(None, waits), ""),
        abandoned=_gone(caches, key[0], wanted) or _abandoned(stages, pes, asleep),
    )


@dataclass(frozen=True)
class _Pe:
    """An existing PE."""

    item: Object
    view: PeView

    def view_of(self, stage: str) -> bool:
        return pe_spec(self.item).stage_name == stage


def _owners(pes: Iterable[_Pe], region: Object | None) -> dict[Key, list[int]]:
    """Return which shards of a stage each of its PEs copies: those that it ran."""
    if region is None:
        return {key_of(pe.item): [0] for pe in pes}
    assignment = region_status(region).assignment
    found = {
        key_of(pe.item): sorted(
            int(shard) for shard, channel in assignment.items() if channel == pe.view.channel
        )
        for pe in pes
    }
    return {key: shards for key, shards in found.items() if shards}


def _stopped(pe: PeView) -> bool:
    """Return whether a PE neither runs a shard nor can still come to run one.

    Before the first stage was stopped all shards ran, so every PE had applied its spec: what a pod
    reports now is of a spec at least as new. One that reports nothing yet may have read an old one.
    """
    return not pe.spec_shards and not pe.held and (pe.ready or not pe.pod_alive)


def _releases(pes: Iterable[_Pe], owners: Mapping[Key, list[int]]) -> list[ReleaseView | None]:
    """Return how each shard ended under its owner, as far as that says so."""
    return [pe.view.releases.get(shard) for pe in pes for shard in owners.get(key_of(pe.item), [])]


def is_clean(releases: Iterable[ReleaseView | None], epoch: int) -> bool:
    """Return whether shards were all let go of between two batches, and not taken up since. Pure.

    `epoch`: of the region. Who has had a shard in an earlier one only may have it back, and another
    PE have run it meanwhile.
    """
    return all(
        item and item.clean and not item.resumed and item.epoch >= epoch for item in releases
    )


def _with_copies(view: StageView, pes: Iterable[_Pe], uid: str) -> StageView:
    runtimes = [pe_status(pe.item).runtime for pe in pes]
    saved = [runtime.saved for runtime in runtimes if runtime]
    ours = [item for item in saved if item and item.uid == uid]
    return replace(
        view,
        saved=frozenset(shard for item in ours for shard in item.shards if not item.message),
        size_bytes=sum(item.size_bytes for item in ours),
        unclean=sum(len(item.unclean) for item in ours),
        state=united_state(item.state for item in ours),
        message="; ".join(item.message for item in ours if item.message),
        damaged=any(item.damaged for item in ours),
    )


def _has_committed(pe: _Pe, savepoint: Object) -> bool:
    runtime = pe_status(pe.item).runtime
    saved = runtime.saved if runtime else None
    ours = saved is not None and saved.uid == savepoint["metadata"]["uid"]
    return saved is not None and ours and saved.committed and not saved.message


def _orphans(caches: Caches, job: Key) -> dict[str, str]:
    """Return pods that may run though their PE is gone, each with the name of its PE."""
    known = {key_of(item) for item in caches.processing_elements_by_job.get(job)}
    return {
        pod["metadata"]["name"]: pe
        for pod in caches.pods_by_job.get(job)
        if (pe := pod["metadata"]["labels"].get(names.LABEL_PE))
        and (job[0], pe) not in known
        and pod_view(pod).alive
    }


def _other_savepoint(caches: Caches, job: Key, savepoint: Object) -> str:
    others = (
        item["metadata"]["name"]
        for item in caches.savepoints_by_job.get(job)
        if goes_first(item, savepoint)
    )
    first = next(others, None)
    return f"savepoint {first} to end" if first else ""


def goes_first(other: Object, savepoint: Object) -> bool:
    """Return whether a savepoint that waits has to wait for another one of its job: for any that is
    under way, and for those that wait for longer.

    That of a width change waits for none that waits, which may wait for the width change. Pure.
    """
    phase = savepoint_status(other).phase
    if phase in OVER or is_going(other):
        return False  # one that is deleted may wait for its repository
    if key_of(other) == key_of(savepoint):
        return False
    own_region = savepoint_spec(savepoint).region
    return phase != "Pending" or (own_region is None and _age(other) < _age(savepoint))


def _age(item: Object) -> tuple[str, str]:
    return item["metadata"]["creationTimestamp"], item["metadata"]["name"]


def _resizing(regions: Mapping[str, Object], own: str | None) -> str:
    """Return which width change has to end first; that of a region's own savepoint waits for it."""
    busy = [
        name
        for name, item in regions.items()
        if own is None and is_true(region_status(item).conditions, "Resizing")
    ]
    return f"the width change of region {busy[0]} to end" if busy else ""


def _asleep(regions: Mapping[str, Object], part: Part) -> str:
    """Return which region has to be woken first: only its PEs can copy its shards."""
    ours = {stage.region for stage in part.stages}
    sleeping = (
        name for name, item in regions.items() if name in ours and region_status(item).asleep
    )
    return next(sleeping, "")


def _gone(caches: Caches, namespace: str, wanted: SavepointSpec) -> str:
    """Return which cut was deleted that is to be gone back to."""
    name = wanted.rolls_back_to
    item = caches.savepoints.get((namespace, name)) if name else None
    there = item is not None and "deletionTimestamp" not in item["metadata"]
    return f"savepoint {name} was deleted" if name and not there else ""


def _abandoned(stages: Iterable[StageView], pes: Iterable[_Pe], asleep: str) -> str:
    names = [view.stage.name for view in stages]
    ended = [
        pe.item["metadata"]["name"]
        for pe in pes
        if pe_status(pe.item).stopped and any(map(pe.view_of, names))
    ]
    if ended:
        return f"{ended[0]} ended, and the restart policy allows no other launch"
    return f"region {asleep} fell asleep while it was saved" if asleep else ""


def _not_running(stage: SavedStage, members: Iterable[_Pe], wanted: SavepointSpec) -> str:
    """Return which shard is not run by the PE that has it; `members`: the PEs of the stage.

    What is rolled back may fail: it is enough that a pod has taken the shard up.
    """
    may_fail = wanted.rolls_back_to is not None
    running = {
        shard
        for pe in members
        for shard, held in pe.view.held.items()
        if may_fail or (held.state == "Running" and held.first_batch_at is not None)
    }
    missing = sorted(set(range(stage.shards)) - running)
    what = "be taken up" if may_fail else "run"
    return f"shard {missing[0]} of stage {stage.name} to {what}" if missing else ""


def _facts(caches: Caches, job: Object, part: Part, regions: Mapping[str, Object]) -> JobFacts:
    namespace, name = key_of(job)
    config_map = caches.config_maps.get((namespace, names.job_config_map(name)))
    settings = part.expansion.spec.processing_element if part.expansion else None
    repository = settings.checkpoint_repository if settings else None
    return JobFacts(
        job_spec=job["spec"],
        generation_id=job_status(job).generation_id,
        content_id=content_of(config_map) or "",
        bundle_digest=part.bundle_digest,
        widths={region: region_spec(item).width for region, item in regions.items()},
        repository=repository or CheckpointRepository(),
        created=from_rfc3339(job["metadata"]["creationTimestamp"]),
    )
