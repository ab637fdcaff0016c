"""Checkpoints of deleted jobs: removed, or said where they stay."""

from pathlib import Path
from typing import Any

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_operator.job.checkpoints import remove_checkpoints


def _job(**status: Any) -> Object:
    return {**JOB.manifest("orders", "prod", {}, uid="u-1"), "status": status}


async def test_they_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "prod" / "orders-u-1"
    folder.mkdir(parents=True)
    assert await remove_checkpoints(tmp_path, _job(generationId=1)) is None
    assert not folder.exists()


async def test_a_volume_that_is_not_the_jobs_is_told(tmp_path: Path) -> None:
    """As where a claim for the operator was bound to a volume of its own."""
    event = await remove_checkpoints(tmp_path, _job(generationId=1))
    assert event is not None
    assert (event.reason, event.type) == ("CheckpointsLeftOver", "Warning")
    assert "prod/orders-u-1 yourself: it is not on the operator's volume" in event.message


async def test_nothing_is_told_of_jobs_that_had_none(tmp_path: Path) -> None:
    """One that was never accepted, or whose processing elements never began."""
    assert await remove_checkpoints(tmp_path, _job()) is None
    (tmp_path / "prod").mkdir()
    assert await remove_checkpoints(tmp_path, _job(generationId=1)) is None


async def test_a_folder_that_can_not_be_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders-u-1").write_text("no folder")
    event = await remove_checkpoints(tmp_path, _job(generationId=1))
    assert event is not None
    assert str(tmp_path) in event.message
