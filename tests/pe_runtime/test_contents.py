"""What a running driver takes up without a new pod: a PE, and changes of it."""

from collections.abc import Callable
from typing import Any

import pytest

from streamgraft_common.content import Content
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import PROCESSING_ELEMENT, RuntimeStatus

pytestmark = pytest.mark.integration


async def test_warm_pod_takes_up_a_pe_and_its_changes(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """A pod that no PE names gets warm; then a PE names it, and later changes its plan in place."""
    pe = await stage.start_warm(0, [0, 1])
    await pe.answers("/readyz", 200)
    source = load(200)
    await pe.name_pod()
    status = await pe.running(0, 1)
    assert (status.pod, status.launch_count) == (f"{pe.name}-1", 1)
    output.until(lambda values: sum(map(len, values.values())) > 200)

    changed = stage.metadata().model_copy(
        update={"parameters": {"least": "1000000"}, "trigger_seconds": 0.2}
    )
    await _replanned(pe, changed, "2")
    output.read(3.0)
    before = {key: len(values) for key, values in output.values.items()}
    sent = source.sent
    await _replanned(pe, stage.metadata(), "3")
    output.until(lambda values: all(len(values[key]) > n for key, n in before.items()))
    source.stop()
    # Between the two nothing passed the filter; around it nothing was lost or doubled, in order.
    for key, values in output.values.items():
        assert values == sorted(set(values))
        assert values[: before[key]] == list(range(before[key]))
        assert values[before[key]] > before[key]
    assert source.sent > sent
    assert pe.process.poll() is None


async def test_pod_works_for_one_pe_after_the_other(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """Its PE is deleted while it holds nothing, as with a channel that is given up; it stays warm,
    and the next one that names it takes up the same shards."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    source, pod = load(200), f"{pe.name}-1"
    output.until(lambda values: sum(map(len, values.values())) > 200)
    for epoch, number in enumerate((1, 0), 2):
        await pe.assign([], epoch)
        await pe.until(lambda status, epoch=epoch: not status.shards and status.epoch == epoch)
        await stage.kube.delete(PROCESSING_ELEMENT.path(stage.namespace, pe.name))
        pe.name = await stage.create(number, [0, 1])
        await stage.write_content(pe, stage.metadata(), "1")
        await pe.answers("/readyz", 200)
        named = {"status": {"pod": pod, "launchCount": 1}}
        path = PROCESSING_ELEMENT.path(stage.namespace, pe.name)
        await stage.kube.patch(f"{path}/status", named)
        status = await pe.running(0, 1)
        assert (status.pod, status.epoch) == (pod, 1)
    sent = source.stop()
    output.until(lambda values: sum(map(len, values.values())) >= sum(sent.values()))
    assert output.values == {key: list(range(count)) for key, count in sent.items()}
    assert pe.process.poll() is None


def _plan(status: RuntimeStatus) -> str:
    """Return the hash of the plan that the driver has applied."""
    return Content.parse(status.content_id).plan


async def _replanned(pe: Any, metadata: PeMetadata, plan: str) -> None:
    """Change the plan, and wait until every shard has a query that was started since."""
    before = {number: shard.started_at for number, shard in (await pe.status()).shards.items()}
    await pe.replan(metadata, plan)

    def replanned(status: RuntimeStatus) -> bool:
        return _plan(status) == plan and all(
            shard.first_batch_at and shard.started_at != before[number]
            for number, shard in status.shards.items()
        )

    await pe.until(replanned)


async def test_plan_that_cannot_be_applied_leaves_the_old_one(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    pe = await stage.start(0, [0])
    await pe.running(0)
    wrong = stage.metadata().model_copy(update={"parameters": {"least": "no number"}})
    await pe.replan(wrong, "2")
    status = await pe.until(lambda status: status.message)
    assert "the old one goes on" in status.message
    assert _plan(status) == "1"
    source = load(100)
    output.until(lambda values: sum(map(len, values.values())) > 100)
    source.stop()
    await pe.replan(stage.metadata(), "3")
    status = await pe.until(lambda status: _plan(status) == "3")
    assert status.message == ""
