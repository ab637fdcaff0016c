"""The simulation can fail: planted bugs, each found within a bounded number of seeds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.simulation import fake_checkpoints
from tests.simulation.fake_checkpoints import KEYS
from tests.simulation.fake_pe import FakeStage
from tests.simulation.fake_records import FakeRecords
from tests.simulation.faults import (
    Fault,
    cancel_job,
    compact,
    crash_pod,
    cut_pod,
    delete,
    delete_by_label,
    edit_job,
    freeze_pod,
    resize,
    sicken_pod,
)
from tests.simulation.savepoint_faults import (
    crash_what_begins,
    restore_savepoint,
    take_savepoint,
)
from tests.simulation.simulation import simulate

from streamgraft_common import names
from streamgraft_common.key_groups import origins
from streamgraft_common.kinds import POD
from streamgraft_common.kube import Gone, Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import version_of
from streamgraft_common.resources import ProcessingElementSpec
from streamgraft_operator import manifests
from streamgraft_operator.job.conductor import JobConductor
from streamgraft_operator.job.deletion import Cleaner
from streamgraft_operator.kafka.client import Kafka
from streamgraft_operator.pe import commands, launches, pod_conductor
from streamgraft_operator.pe import step as pod
from streamgraft_operator.pe.view import PeView, ReleaseView
from streamgraft_operator.region import controller as region_controller
from streamgraft_operator.region.shards import Shards
from streamgraft_operator.savepoint import parking
from streamgraft_operator.savepoint import stages as savepoints
from streamgraft_operator.savepoint import step as savepoint
from streamgraft_operator.savepoint.view import StageView
from streamgraft_pe_runtime.protocol.shards import Shards as HeldShards

LIMIT = 600
"""Seeds in which a bug has to be found; most take a few."""

Plant = Callable[[pytest.MonkeyPatch], None]


def create_pods_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod conductor that does not wait until the pods of older launches are gone."""

    def step(pe: Any, pods: Any, now: float) -> pod.PodDecision:
        decision = pod.step(pe, pods, now)
        waits = decision.waiting_for.startswith("pod ")
        return replace(decision, create=True, waiting_for="") if waits else decision

    monkeypatch.setattr(pod_conductor, "step", step)


def hand_over_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hand-over that does not wait for the release of the old owner."""

    def free(self: Shards, shard: int, stage: int) -> bool:
        return not any(shard in other.spec_shards for other in self._others(shard, stage))

    monkeypatch.setattr(Shards, "_free", free)


def ignore_what_pods_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard counts as free although another pod says that it holds it."""
    of = PeView.of

    def view(spec: Any, status: Any, pods: frozenset[str], **more: Any) -> PeView:
        return replace(of(spec, status, pods, **more), held={})

    monkeypatch.setattr(PeView, "of", staticmethod(view))


def accept_old_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of the epoch before counts for this one."""

    def release(self: Shards, shard: int, stage: int) -> ReleaseView | None:
        for pe in self._others(shard, stage):
            found = pe.releases.get(shard)
            if found and found.epoch >= self.status.epoch - 1:
                return found
        return None

    monkeypatch.setattr(Shards, "_release", release)


def take_up_what_was_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PE that takes up what its spec of an older epoch names, too."""
    follow = HeldShards.follow

    def of_both(self: HeldShards, spec: ProcessingElementSpec) -> None:
        shards = sorted({*spec.shards, *self._wanted})
        follow(self, spec.model_copy(update={"shards": shards}))

    monkeypatch.setattr(HeldShards, "follow", of_both)


def raise_launch_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is counted twice."""

    def twice(status: Any, *cause: Any) -> Any:
        once = launches.raised(status, *cause)
        return once.model_copy(update={"launch_count": once.launch_count + 1})

    monkeypatch.setattr(commands, "raised", twice)


def never_wait_for_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams always count as read to their ends."""

    async def drained(*_: object) -> bool:
        return True

    monkeypatch.setattr(Kafka, "drained", drained)


def write_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink without a ledger: at least once."""
    monkeypatch.setattr(FakeRecords, "is_written", lambda *_: False)


def ignore_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hand-over that takes every report for one of the present epoch."""
    of = PeView.of

    def view(spec: Any, status: Any, pods: frozenset[str], **more: Any) -> PeView:
        return replace(of(spec, status, pods, **more), applied_epoch=10**6)

    monkeypatch.setattr(PeView, "of", staticmethod(view))


def drop_finalizer_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean-up that lets the job go before what it consists of."""

    async def clean(self: Any, job: Object) -> None:
        metadata = job["metadata"]
        await self._context.write.jobs.release((metadata["namespace"], metadata["name"]))

    monkeypatch.setattr(Cleaner, "clean", clean)


def ignore_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that goes on watching although its watch is too old, and does not list again."""
    watch = Store._watch

    async def resume(self: Any) -> None:
        try:
            await watch(self)
        except Gone:
            listing = await self._client.list(self._path, self._selectors)
            self._told = version_of(listing)

    monkeypatch.setattr(Store, "_watch", resume)


def adopt_pods_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod conductor that adopts a pod of the warm pool whether or not it is still in there."""

    async def adopt(self: Any, item: Object, name: str) -> bool:
        adoption = manifests.adoption(item)
        labels = adoption["labels"] | {names.LABEL_POOL: None}
        path = POD.path(item["metadata"]["namespace"], name)
        await self._context.client.patch(path, {"metadata": {**adoption, "labels": labels}})
        return True

    monkeypatch.setattr(pod_conductor.PodConductor, "_adopt", adopt)


def free_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region that puts pods back into the pool whatever they hold."""

    def came_from_the_pool(item: Object) -> bool:
        return names.is_warm_pod(item["spec"]["job"], item["status"].get("pod") or "")

    monkeypatch.setattr(region_controller, "is_free", came_from_the_pool)


def save_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A savepoint that does not wait until its shards stand still."""
    monkeypatch.setattr(savepoints, "_stopped", lambda _: True)


def stop_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A savepoint that does not wait until a stage has got all that those above it write."""

    def frontier(stages: tuple[StageView, ...], parked: frozenset[str]) -> list[StageView]:
        return [item for item in stages if item.stage.name not in parked]

    monkeypatch.setattr(savepoint, "frontier", frontier)


def give_back_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards that go back to their owners while they are copied."""
    monkeypatch.setattr(parking, "ACTIVE", ("Draining",))


def restore_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is there before all of its state is, and stays so if the pod dies."""

    async def prepare(self: FakeStage, shard: int) -> None:
        pe = self.pe
        if not pe.checkpoints.exists(pe.stage, shard):
            counts = dict.fromkeys(range(KEYS), 0)
            pe.checkpoints.create(pe.stage, shard, counts)
            await pe.passes(pe.tempo.plan)
            counts.clear()
            counts.update(pe.checkpoints.first_counts(self.origin, shard))
        await real(self, shard)

    real = FakeStage._prepare
    monkeypatch.setattr(FakeStage, "_prepare", prepare)


def read_one_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that looks for the keys of a group in one of the old groups only."""

    def first(old_groups: int, new_groups: int, group: int) -> list[int]:
        return origins(old_groups, new_groups, group)[:1]

    monkeypatch.setattr(fake_checkpoints, "origins", first)


def forget_the_savepoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that takes all of its shards for begun before they are."""
    monkeypatch.setattr(JobConductor, "_to_begin", lambda *_: set())


@pytest.mark.parametrize(
    ("plant", "faults"),
    [
        (create_pods_early, (crash_pod, delete(POD))),
        (hand_over_early, (resize,)),
        (ignore_epochs, (resize, cut_pod, freeze_pod)),
        (ignore_what_pods_say, (resize,)),
        (take_up_what_was_ours, (resize,)),
        (raise_launch_counts_twice, (edit_job,)),
        (never_wait_for_records, (take_savepoint,)),
        (write_again, (crash_pod,)),
        (drop_finalizer_early, (cancel_job,)),
        (ignore_gone, (compact, cancel_job, delete(POD))),
        (adopt_pods_twice, (delete_by_label,)),
        (free_what_works, (resize, sicken_pod)),
        (save_what_runs, (take_savepoint,)),
        (stop_all_at_once, (take_savepoint,)),
        (give_back_early, (take_savepoint,)),
        (restore_in_place, (restore_savepoint, crash_what_begins)),
        (read_one_origin, (restore_savepoint,)),
        (forget_the_savepoint, (restore_savepoint,)),
    ],
)
def test_planted_bug_is_found(
    plant: Plant, faults: Sequence[Fault], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    outcomes = (simulate(seed, faults=faults) for seed in range(LIMIT))
    assert any(outcome.problem for outcome in outcomes), f"not found in {LIMIT} seeds"
