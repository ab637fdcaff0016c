"""What must not stop a PE for good, nor lose a record."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgraft_common.resources import RuntimeStatus
from streamgraft_pe_runtime.positions import read_checkpoint

pytestmark = pytest.mark.integration


async def test_sigterm_stops_at_a_batch_boundary(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """The next launch goes on exactly where this one ended."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    assert (await pe.get("/readyz"))[0] == 200
    source = load(300)
    output.until(lambda values: sum(map(len, values.values())) > 300)
    metrics = (await pe.get("/metrics"))[1]
    assert f'streamgraft_pe_lag_records{{partition="0",topic="{stage.input}"}}' in metrics
    assert "streamgraft_pe_slots 2.0" in metrics
    assert await pe.terminate() == 0
    status = await pe.status()
    assert not status.ready
    assert status.shards == {}
    assert [release.clean for release in status.releases.values()] == [True, True]
    folder = stage.folder / "checkpoints" / stage.metadata().checkpoint_path
    (checkpoint,) = folder.glob("queries/*")
    assert read_checkpoint(checkpoint).positions
    assert read_checkpoint(checkpoint).clean
    again = await stage.start(1, [0, 1])
    await again.running(0, 1)
    expected = {key: list(range(count)) for key, count in source.stop().items()}
    output.until(lambda values: sum(map(len, values.values())) >= source.sent)
    assert output.values == expected


@pytest.mark.long
async def test_broker_away(stage: Any, load: Callable[[int], Any], output: Any) -> None:
    """A broker that stops and starts during the run: each record is there once, the PE goes on.
    Its status tells of the streams between it and others, each time that they come or go."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    status = await pe.until(lambda status: connected(status) == {"in": True, "out": True})
    assert {item.topic for item in status.connections} == {stage.input, stage.output}
    source = load(100)
    output.until(lambda values: sum(map(len, values.values())) > 100)
    await asyncio.to_thread(stage.cluster.stop, "kafka")
    try:
        status = await pe.until(lambda status: not any(connected(status).values()), 120)
        assert all(item.message for item in status.connections)
        assert (await pe.get("/healthz"))[0] == 200
    finally:
        await asyncio.to_thread(stage.cluster.start, "kafka")
    await pe.running(0, 1)
    await pe.until(lambda status: connected(status) == {"in": True, "out": True})
    sent = source.stop()
    output.until(lambda values: {k: len(set(v)) for k, v in values.items()} == sent, 120)
    output.read(1.0)
    assert output.values == {key: list(range(count)) for key, count in sent.items()}


@pytest.mark.parametrize("stage", ["broken"], indirect=True)
async def test_failing_user_function(
    stage: Any, load: Callable[[int], Any], output: Any, tmp_path: Path
) -> None:
    """The shard's state says what the function raised, and heals with it."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    (tmp_path / "broken").touch()
    source = load(100)
    failed = await pe.until(lambda status: status.shards["0"].state == "Failed")
    assert failed.shards["0"].message == "ValueError: the service is out of order"
    (tmp_path / "broken").unlink()
    await pe.running(0, 1)
    sent = source.stop()
    output.until(lambda values: {k: len(set(v)) for k, v in values.items()} == sent)
    told = (await pe.get("/metrics"))[1].splitlines()
    restarts = [line for line in told if line.startswith("streamgraft_pe_query_restarts_total{")]
    assert len(restarts) == 2
    assert not any(line.endswith(" 0.0") for line in restarts)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["broken"], indirect=True)
async def test_pe_that_ends_itself(
    stage: Any, load: Callable[[int], Any], output: Any, tmp_path: Path
) -> None:
    """Python's worker calls shutdown_pe: the PE ends after its batch, and the next goes on."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    source = load(100)
    output.until(lambda values: sum(map(len, values.values())) > 100)
    (tmp_path / "broken").write_text("enough")
    assert await asyncio.to_thread(pe.process.wait, 60) == 0
    status = await pe.status()
    assert (status.ready, status.shards) == (False, {})
    assert [release.clean for release in status.releases.values()] == [True, True]
    (tmp_path / "broken").unlink()
    again = await stage.start(1, [0, 1])
    await again.running(0, 1)
    expected = {key: list(range(count)) for key, count in source.stop().items()}
    output.until(lambda values: sum(map(len, values.values())) >= source.sent)
    assert output.values == expected


def connected(status: RuntimeStatus) -> dict[str, bool]:
    """Return whether the stream in and the one out are connected."""
    return {item.direction: item.connected for item in status.connections or ()}


@pytest.mark.parametrize("stage", ["merged"], indirect=True)
async def test_plan_that_may_mix_shards_has_a_query_for_each_and_says_why(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """The application's description does not show what join Spark chooses."""
    pe = await stage.start(0, [0, 1])
    status = await pe.running(0, 1)
    assert status.apart == "it has SortMergeJoin, which may mix the rows of several partitions"
    folder = stage.folder / "checkpoints" / stage.metadata().checkpoint_path
    assert not list(folder.glob("queries/*"))
    assert all((folder / shard / "offsets").is_dir() for shard in "01")
