"""A batch that was cut off ends in its own mode; who has its shard meanwhile is told so."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgraft_pe_runtime.checkpoint_files import LEDGERS, LOOSE, REAL_TIME, keep_as_former
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.ledgers import Entry
from streamgraft_pe_runtime.modes import (
    OtherMode,
    check,
    comes_again,
    end_loose,
    forget,
    give_up_ledger,
    loose_since,
    may_be_repeated,
)
from streamgraft_pe_runtime.protocol import Left
from streamgraft_pe_runtime.query_logs import newest
from streamgraft_pe_runtime.spark_work import SparkStage


def checkpoint(folder: Path, *, begun: bool, cut_off: bool) -> Path:
    """Write a checkpoint that real-time mode has begun to write, or a batch of which is begun."""
    for log, count in (("offsets", 2), ("commits", 1 if cut_off else 2)):
        (folder / log).mkdir(parents=True)
        for number in range(count):
            (folder / log / str(number)).write_text('v1\n{}\n{"t":{"0":5}}')
    (folder / LEDGERS).mkdir()
    (folder / LEDGERS / "MAIN").touch()
    if begun:
        (folder / LEDGERS / REAL_TIME).touch()
    return folder


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("cut_off", [False, True])
@pytest.mark.parametrize("real_time", [False, True])
def test_the_mode_must_be_that_of_the_batch(
    tmp_path: Path, begun: bool, cut_off: bool, real_time: bool
) -> None:
    """In real-time mode it has no log until it ends, but may be in it then, not yet committed."""
    found = checkpoint(tmp_path / "0", begun=begun, cut_off=cut_off)
    mode = "real time" if begun else "batches" if cut_off else "any"
    if mode in ("any", "real time" if real_time else "batches"):
        check(found, real_time=real_time)
    else:
        with pytest.raises(OtherMode, match="set real-time mode as it was"):
            check(found, real_time=real_time)
    forget(found)
    check(found, real_time=False)


def test_a_batch_of_a_savepoint_may_run_in_another_mode(tmp_path: Path) -> None:
    """Nothing was written under the new job's names."""
    found = checkpoint(tmp_path / "0", begun=False, cut_off=True)
    (found / LEDGERS / "MAIN").unlink()
    check(found, real_time=True)


def test_a_ledger_that_is_given_up_refuses_nobody(tmp_path: Path) -> None:
    found = checkpoint(tmp_path / "0", begun=True, cut_off=True)
    keep_as_former(found)
    (found / LEDGERS / "MAIN").touch()
    give_up_ledger(found)
    for real_time in (False, True):
        check(found, real_time=real_time)
    assert [file for file in (found / LEDGERS).rglob("*") if file.is_file()] == []


def test_since_when_rows_may_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since the first of the runs began that did not end between two batches."""
    monkeypatch.setattr(time, "time", lambda: 200.5)
    assert loose_since(tmp_path) == 200
    assert not comes_again(tmp_path)
    mark = tmp_path / LEDGERS / LOOSE
    mark.parent.mkdir()
    mark.write_text("100")
    assert loose_since(tmp_path) == 100
    assert comes_again(tmp_path)
    mark.write_text("")
    assert loose_since(tmp_path) == 0, "nobody knows"
    keep_as_former(tmp_path)
    assert not comes_again(tmp_path)
    mark.write_text("100")
    end_loose(tmp_path)
    assert not comes_again(tmp_path)


def unused(folder: Path, shards: Any) -> None:
    raise AssertionError("no batch is to be ended")


def test_a_joint_query_does_not_take_over_what_real_time_mode_has_begun(tmp_path: Path) -> None:
    """The shards stay as they are, and that mode can go on with them."""
    for shard in (0, 1):
        checkpoint(tmp_path / str(shard), begun=shard == 1, cut_off=False)
    (tmp_path / "1" / LEDGERS / "MAIN").write_text("ours")
    stage = JointCheckpoints(tmp_path, unused, ledgers=lambda begun: {(1, "ours"): Entry("", 0)})
    with pytest.raises(OtherMode):
        stage.take_over([0, 1], lambda topic, shard: 0)
    assert newest(tmp_path / "1" / "offsets") == 1
    check(stage.take_alone(1), real_time=True)
    forget(tmp_path / "1")
    (tmp_path / "1" / LEDGERS / "MAIN").unlink()
    assert stage.take_over([0, 1], lambda topic, shard: 0).exists()


def test_a_shard_that_comes_back_has_no_mark_of_a_run_that_came_late(tmp_path: Path) -> None:
    found = checkpoint(tmp_path / "0", begun=True, cut_off=False)
    keep_as_former(found)
    assert not may_be_repeated(found)
    assert not (found / LEDGERS / "former" / REAL_TIME).exists()


@pytest.mark.parametrize("begun", [False, True])
def test_a_shard_is_left_unclean_amid_a_batch(tmp_path: Path, begun: bool) -> None:
    """Also where no log says so."""
    checkpoint(tmp_path / "0", begun=begun, cut_off=False)
    assert left(tmp_path).clean == (not begun)


def test_a_shard_that_was_never_started_is_left_as_the_pod_before_has_left_it(
    tmp_path: Path,
) -> None:
    """That may have died amid a batch of a query over several shards."""
    checkpoint(tmp_path / "0", begun=False, cut_off=False)
    query = JointCheckpoints(tmp_path, unused).take_over([0], lambda topic, shard: 0)
    assert left(tmp_path).clean
    (query / "offsets" / "1").write_text((query / "offsets" / "0").read_text())
    assert not left(tmp_path).clean


def left(folder: Path) -> Left:
    """Return how a shard is left that we have not started."""
    storage: Any = SimpleNamespace(folder=folder, checkpoint=lambda shard: folder / str(shard))
    driver: Any = SimpleNamespace(state_provider=None, joint=False, obstacle="")
    progress: Any = SimpleNamespace(release=lambda shard, checkpoint, publish: None)
    metadata: Any = SimpleNamespace(shard_count=1)
    return SparkStage(driver, storage, progress, metadata)._leave(0, publish=True)
