"""Checkpoints of deleted jobs: removed, or said where they stay."""

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_operator.job.checkpoints import remove_checkpoints
from streamgraft_operator.kit import external_calls
from streamgraft_operator.kit.external_calls import ExternalCalls, UnderWay
from streamgraft_operator.kit.volume import Volume


def _job(**status: Any) -> Object:
    return {**JOB.manifest("orders", "prod", {}, uid="u-1"), "status": status}


async def test_they_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "prod" / "orders-u-1"
    folder.mkdir(parents=True)
    assert await remove_checkpoints(Volume(tmp_path, ExternalCalls()), _job(generationId=1)) is None
    assert not folder.exists()


async def test_a_volume_that_is_not_the_jobs_is_told(tmp_path: Path) -> None:
    """As where a claim for the operator was bound to a volume of its own."""
    event = await remove_checkpoints(Volume(tmp_path, ExternalCalls()), _job(generationId=1))
    assert event is not None
    assert (event.reason, event.type) == ("CheckpointsLeftOver", "Warning")
    assert "prod/orders-u-1 yourself: it is not on the operator's volume" in event.message


async def test_nothing_is_told_of_jobs_that_had_none(tmp_path: Path) -> None:
    """One that was never accepted, or whose processing elements never began."""
    assert await remove_checkpoints(Volume(tmp_path, ExternalCalls()), _job()) is None
    (tmp_path / "prod").mkdir()
    assert await remove_checkpoints(Volume(tmp_path, ExternalCalls()), _job(generationId=1)) is None


async def test_a_folder_that_can_not_be_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders-u-1").write_text("no folder")
    event = await remove_checkpoints(Volume(tmp_path, ExternalCalls()), _job(generationId=1))
    assert event is not None
    assert str(tmp_path) in event.message


async def _still_removes(volume: Volume) -> bool:
    try:
        assert await remove_checkpoints(volume, _job(generationId=1)) is None
    except UnderWay:
        return True
    return False


async def test_a_worker_does_not_wait_for_a_volume_that_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal is begun once, and takes no thread of those that all else needs."""
    monkeypatch.setattr(external_calls, "PATIENCE_SECONDS", 0.01)
    (tmp_path / "prod" / "orders-u-1").mkdir(parents=True)
    answers, begun, rmtree = threading.Event(), [], shutil.rmtree

    def slow(path: Path) -> None:
        begun.append(threading.current_thread().name)
        answers.wait(30)
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", slow)
    volume = Volume(tmp_path, ExternalCalls())
    for _ in range(3):
        with pytest.raises(UnderWay):
            await remove_checkpoints(volume, _job(generationId=1))
    assert await asyncio.to_thread(lambda: "at once") == "at once"
    answers.set()
    async with asyncio.timeout(30):
        while await _still_removes(volume):
            await asyncio.sleep(0.01)
    assert not (tmp_path / "prod" / "orders-u-1").exists()
    assert begun == ["volume_0"]
