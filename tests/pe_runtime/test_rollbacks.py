"""What a cut has takes the place of checkpoints, on files as Spark lays them out."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.pe_runtime.test_savepoints import REQUEST, TOPIC, checkpoint, storage

from streamgraft_common.resources import Saving
from streamgraft_pe_runtime import query_logs, savepoints, shard_names
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, TAKEN_OVER, entries, incarnation
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.copied_logs import placed
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.protocol import CopyDamaged
from streamgraft_pe_runtime.query_logs import close, is_closed, newest
from streamgraft_pe_runtime.savepoints import Storage
from streamgraft_pe_runtime.shard_names import QUERIES, TakenByAnother
from streamgraft_pe_runtime.spark_work import SparkStage
from streamgraft_pe_runtime.topic_ids import NOTE, noted

BACK = Saving(savepoint="back", uid="b", shards=[0], rolls_back_to="first", ends={TOPIC: [77, 5]})


def cut_and_gone_on(root: Path) -> Storage:
    """Return the storage of shards that were cut behind batch 1, and are at batch 4."""
    here = storage(root, "job")
    own = here.checkpoint(0)
    checkpoint(own, TOPIC, 2)
    (own / "sources" / "0").mkdir(parents=True)
    (own / "sources" / "0" / "0").write_text("\0v1\n" + json.dumps({TOPIC: {"0": 0}}))
    (own / NOTE).write_text(json.dumps({TOPIC: "an id", "clicks": "a user's"}))
    here.save(REQUEST)
    for batch in (2, 3, 4):
        for log in ("offsets", "commits"):
            lines = ["v1", "{}", json.dumps({TOPIC: {"0": 10 * batch}})]
            (own / log / str(batch)).write_text("\n".join(lines))
    return here


def test_a_shard_goes_on_behind_the_cut_at_the_end_of_its_input(tmp_path: Path) -> None:
    here = cut_and_gone_on(tmp_path)
    own = here.checkpoint(0)
    before = incarnation(own)
    assert here.roll_back(BACK).shards == [0]
    assert noted(own) == {"clicks": "a user's"}, "positions are of the streams that are there now"
    assert sorted(file.name for file in (own / "commits").glob("[0-9]*")) == ["0", "1"]
    assert read_checkpoint(own).positions == {(TOPIC, 0): 77}
    first = (own / "sources" / "0" / "0").read_text()
    assert first == "\0v1\n" + json.dumps({TOPIC: {"0": 77}})
    assert not (own / LEDGERS).exists()
    assert incarnation(own) != before, "what it writes again is told from what it wrote"
    copy = tmp_path / "ns/savepoints/first/work/0"
    assert read_checkpoint(copy).positions == {(TOPIC, 0): 10}, "the cut stays as it is"
    assert [item.name for item in own.parent.iterdir()] == ["0"], "nothing else is left"


def test_a_cut_of_a_shard_that_is_to_be_restored_yet_makes_no_checkpoint_of_it(
    tmp_path: Path,
) -> None:
    """As when its pod died before it took the shard up: what has a folder is not restored."""
    cut_and_gone_on(tmp_path)
    fork = storage(tmp_path, "fork", "first")
    driver: Any = SimpleNamespace(state_provider=None, joint=True, obstacle="")
    metadata: Any = SimpleNamespace(shard_count=2)
    nothing: Any = None
    request = REQUEST.model_copy(update={"savepoint": "second"})
    SparkStage(driver, fork, nothing, metadata)._save(request)
    fork.prepare(0)
    assert entries(fork.checkpoint(0) / "commits") == [0, 1]


def test_a_cut_takes_no_shard_from_a_query_that_runs_it_alone(tmp_path: Path) -> None:
    """It may be asked for once more, of a pod that runs again; a takeover that was cut off, whose
    log is closed, is ended first."""
    here = cut_and_gone_on(tmp_path)
    driver: Any = SimpleNamespace(state_provider=None, joint=True, obstacle="")
    metadata: Any = SimpleNamespace(shard_count=2)
    nothing: Any = None
    stage = SparkStage(driver, here, nothing, metadata)
    own = stage._checkpoints.take_alone(0)
    for closed in (False, True):
        if closed:
            assert close(own)
        stage._save(REQUEST.model_copy(update={"savepoint": f"second-{closed}"}))
        assert entries(own / QUERIES) == [int(closed)]
        assert entries(tmp_path / f"ns/savepoints/second-{closed}/work/0/offsets") == [3, 4]


def test_it_is_done_once_though_it_is_asked_for_again(tmp_path: Path) -> None:
    """As after a crash of the pod, whose next launch has gone on already."""
    here = cut_and_gone_on(tmp_path)
    here.roll_back(BACK)
    (here.checkpoint(0) / "mine").touch()
    here.roll_back(BACK)
    assert (here.checkpoint(0) / "mine").exists()
    here.roll_back(BACK.model_copy(update={"uid": "c"}))
    assert not (here.checkpoint(0) / "mine").exists()


def test_the_query_that_had_the_shards_is_fenced(tmp_path: Path) -> None:
    """By whoever asks for the rollback of a stage; not by one who only looks at the cut."""
    here = cut_and_gone_on(tmp_path)
    driver: Any = SimpleNamespace(state_provider=None, joint=True, obstacle="")
    metadata: Any = SimpleNamespace(shard_count=2)
    nothing: Any = None
    stage = SparkStage(driver, here, nothing, metadata)
    query = JointCheckpoints(here.folder, nothing).take_over([0, 1], lambda topic, shard: 0)
    stage._save(BACK.model_copy(update={"commit": False}))
    assert not is_closed(query)
    names = here.checkpoint(0) / QUERIES
    before = newest(names)
    stage._save(BACK.model_copy(update={"commit": True}))
    assert is_closed(query)
    assert entries(names) == [before + 1], "a takeover that has read the one of before is late"
    assert stage._checkpoints.checkpoint(0) == here.checkpoint(0)


@pytest.mark.parametrize("place", ["_check_copy", "link_tree"])
def test_a_process_that_outlives_its_pod_leaves_what_the_next_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """It is frozen before it makes its copy, or behind that, when the next pod removes it."""
    here, next_pod = cut_and_gone_on(tmp_path), storage(tmp_path, "job")
    go_on = getattr(savepoints, place)

    def thaw_late(*arguments: Any) -> None:
        monkeypatch.undo()
        go_on(*arguments)
        next_pod.roll_back(BACK)
        (next_pod.checkpoint(0) / "mine").touch()

    monkeypatch.setattr(savepoints, place, thaw_late)
    with suppress(FileNotFoundError):
        here.roll_back(BACK)
    assert (here.checkpoint(0) / "mine").exists()
    assert [item.name for item in here.folder.iterdir()] == ["0"], "nothing else is left"


@pytest.mark.parametrize("amid", [False, True])
@pytest.mark.parametrize(
    ("module", "place"), [(savepoints, "_check_copy"), (shard_names, "take_back")]
)
def test_a_process_that_outlives_its_pod_ends_no_query_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, place: str, *, amid: bool
) -> None:
    """It is frozen at its first shard, and the query has the other one, too."""
    here, next_pod = cut_and_gone_on(tmp_path), storage(tmp_path, "job")
    checkpoint(here.checkpoint(1), TOPIC, 2)
    both = {"shards": [0, 1]}
    here.save(REQUEST.model_copy(update=both))
    back = BACK.model_copy(update=both)
    stage = JointCheckpoints(here.folder, cast("Any", None))
    before = stage.take_over([0, 1], lambda topic, shard: 0)
    go_on, begun = getattr(module, place), list[Path]()

    def thaw_late(*arguments: Any) -> None:
        monkeypatch.undo()
        go_on(*arguments)
        next_pod.roll_back(back, stage.left_behind)
        begun.append(query := stage.take_over([0, 1], lambda topic, shard: 0))
        if amid:
            last = newest(query / "offsets")
            planned = (query / "offsets" / str(last)).read_text()
            (query / "offsets" / str(last + 1)).write_text(planned)

    monkeypatch.setattr(module, place, thaw_late)
    here.roll_back(back, stage.left_behind)
    assert is_closed(before)
    assert not is_closed(begun[0])
    assert not (begun[0] / LEDGERS / TAKEN_OVER).exists()
    assert stage.take_over([0, 1], lambda topic, shard: 0) == begun[0]


def test_a_shard_whose_names_are_damaged_goes_back(tmp_path: Path) -> None:
    """They may be why it does."""
    here = cut_and_gone_on(tmp_path)
    stage = JointCheckpoints(here.folder, cast("Any", None))
    stage.take_over([0], lambda topic, shard: 0)
    stage.names[0].write_text("garbage")
    here.roll_back(BACK, stage.left_behind)
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 77}


def test_a_crash_amid_it_leaves_the_checkpoint_or_nothing(tmp_path: Path) -> None:
    here = cut_and_gone_on(tmp_path)
    here.checkpoint(0).rename(here.checkpoint(0).with_name(".0-before-b"))
    here.roll_back(BACK)
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 77}


@pytest.mark.parametrize("remains", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_who_takes_a_folder_back_too_late_leaves_the_one_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, remains: bool, dies: bool
) -> None:
    """The next pod has done so since it looked, and the rollback; of the folder of before some
    files may remain. If the late one dies at once, the next rollback has the one that ran."""
    here, next_pod = cut_and_gone_on(tmp_path), storage(tmp_path, "job")
    own, stage = here.checkpoint(0), JointCheckpoints(here.folder, cast("Any", None))
    stage.take_alone(0)
    old = own.rename(shard_names.aside(own, BACK.uid))
    look, rename = shard_names.left_aside, Path.rename

    def die(path: Path, target: Path) -> Path:
        found = rename(path, target)
        if path == own:
            raise KeyboardInterrupt
        return found

    def thaw_late(shard: Path) -> list[Path]:
        found = look(shard)
        monkeypatch.undo()
        next_pod.roll_back(BACK, stage.left_behind)
        stage.take_alone(0)
        (own / "mine").touch()
        if remains:
            (old / "state").mkdir(parents=True)
        if dies:
            monkeypatch.setattr(Path, "rename", die)
        return found

    monkeypatch.setattr(shard_names, "left_aside", thaw_late)
    with suppress(FileNotFoundError, KeyboardInterrupt):
        here.roll_back(BACK, stage.left_behind)
    monkeypatch.undo()
    if dies and remains:
        with pytest.raises(CheckpointDamaged, match="cut off: roll back the region"):
            stage.take_alone(0)
        shard_names.take_back(own)
    assert (own / "mine").exists()
    assert stage.names[0].exists()


@pytest.mark.parametrize("amid", [None, False, True])
@pytest.mark.parametrize("junk", [False, True])
def test_a_rollback_that_was_cut_off_gives_no_name_that_was_there(
    tmp_path: Path, *, amid: bool | None, junk: bool
) -> None:
    """Between its renames. The owner of before may be frozen: it has run the shard alone (None), or
    in a query over several, maybe amid a batch; or it has made files where there was no folder."""
    here = storage(tmp_path, "job")
    own, nothing = here.checkpoint(0), cast("Any", None)
    checkpoint(own, TOPIC, 2)
    stage = JointCheckpoints(here.folder, nothing)
    stage.take_alone(0)
    here.save(REQUEST)
    found = stage.take_alone(0) if amid is None else stage.take_over([0], lambda topic, shard: 0)
    frozen = stage.names[0]
    if amid:
        last = newest(found / "offsets")
        (found / "offsets" / str(last + 1)).write_text("the next batch")
    own.rename(own.with_name(".0-before-other"))
    if junk:
        (own / "state" / "0" / "0").mkdir(parents=True)
    for start in (stage.check_left, stage.take_alone, stage.is_alone):
        with pytest.raises(CheckpointDamaged, match="cut off: roll back the region"):
            start(0)
    here.roll_back(BACK, stage.left_behind)
    assert frozen.parent.parent == own
    assert not frozen.exists()
    assert len(entries(own / QUERIES)) == 1
    assert read_checkpoint(own).positions == {(TOPIC, 0): 77}
    assert amid is None or is_closed(found)
    assert [item.name for item in own.parent.glob("*0*")] == ["0"]


@pytest.mark.parametrize(("module", "place"), [(shutil, "rmtree"), (query_logs, "bar")])
def test_a_crash_behind_it_leaves_no_query_of_before_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, place: str
) -> None:
    """The pod dies when the new folder is there: before the query is ended, whose owner is frozen
    amid a batch, or while the folder of before is removed."""
    here = cut_and_gone_on(tmp_path)
    stage = JointCheckpoints(here.folder, cast("Any", None))
    query = stage.take_over([0], lambda topic, shard: 0)
    last = newest(query / "offsets")
    (query / "offsets" / str(last + 1)).write_text("the next batch")
    go_on, old = getattr(module, place), shard_names.aside(here.checkpoint(0), BACK.uid)

    def die(path: Path, **options: Any) -> None:
        if path in (query, old):
            raise KeyboardInterrupt
        go_on(path, **options)

    monkeypatch.setattr(module, place, die)
    with pytest.raises(KeyboardInterrupt):
        here.roll_back(BACK, stage.left_behind)
    monkeypatch.undo()
    here.roll_back(BACK, stage.left_behind)
    assert is_closed(query)
    assert (query / LEDGERS / TAKEN_OVER).exists()
    assert list(here.folder.glob(".*")) == []


@pytest.mark.parametrize("is_of_before", [False, True])
def test_shards_that_did_not_go_back_with_those_of_their_query_say_what_to_do(
    tmp_path: Path, *, is_of_before: bool
) -> None:
    """As when the rollback has ended halfway: their batch was cut off, and nobody may end it. An
    entry of an earlier version says the same as one of a log that NFS does not show yet."""
    here, nothing = storage(tmp_path, "job"), cast("Any", None)
    checkpoint(here.checkpoint(0), TOPIC, 2)
    stage = JointCheckpoints(here.folder, nothing)
    here.save(REQUEST)
    query = stage.take_over([0, 1], lambda topic, shard: 0)
    last = newest(query / "offsets")
    (query / "offsets" / str(last + 1)).write_text((query / "offsets" / str(last)).read_text())
    here.roll_back(BACK, stage.left_behind)
    if is_of_before:
        (query / "offsets" / str(last + 2)).write_text("closed\n")
    error, text = (
        (OSError, "try again") if is_of_before else (CheckpointDamaged, "roll back the region")
    )
    for _ in range(2):
        with pytest.raises(error, match=text):
            stage.take_over([0, 1], lambda topic, shard: 0)
        with pytest.raises(error, match=text):
            stage.take_alone(1)
    here.roll_back(BACK.model_copy(update={"shards": [0, 1]}), stage.left_behind)
    assert stage.take_over([0, 1], lambda topic, shard: 0) != query


def test_a_takeover_amid_a_rollback_has_no_name_of_the_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names its query right before the folder is replaced, or while there is none."""
    here, nothing = cut_and_gone_on(tmp_path), cast("Any", None)
    own, rename = here.checkpoint(0), Path.rename
    stage = JointCheckpoints(here.folder, nothing)
    stage.take_alone(0)
    holder = shard_names.holder(own)

    def renamed(path: Path, target: Path) -> Path:
        if path == own:
            stage.take_alone(0)
        elif target == own:
            with pytest.raises(TakenByAnother):
                shard_names.name(own, holder, None)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    here.roll_back(BACK)
    assert not stage.names[0].exists()
    assert read_checkpoint(own).positions == {(TOPIC, 0): 77}


def left_by_a_crash(checkpoint: Path) -> None:
    """Leave what pods may that die amid replacing a checkpoint, or making one."""
    for name in (
        ".0-before-a",
        ".0-before-b",
        ".0-x3_k2",
        ".01-other",
        ".10-before-a",
        ".10-x3_k2",
    ):
        (checkpoint.with_name(name) / "commits").mkdir(parents=True)


def test_what_a_crash_left_beside_a_checkpoint_goes(tmp_path: Path) -> None:
    """And nothing of other shards, which others may work on."""
    here = cut_and_gone_on(tmp_path)
    left_by_a_crash(here.checkpoint(0))
    here.roll_back(BACK)
    stay = [".01-other", ".10-before-a", ".10-x3_k2"]
    found = sorted(item.name for item in here.checkpoint(0).parent.iterdir())
    assert found == [*stay, "0"]
    fork = storage(tmp_path, "fork", "first")
    left_by_a_crash(fork.checkpoint(0))
    fork.prepare(0)
    found = sorted(item.name for item in fork.checkpoint(0).parent.iterdir())
    assert found == [*stay, "0"]


def test_a_pod_whose_copy_another_has_removed_leaves_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was lost by its node amid a rollback, and goes on when the next one has done that."""
    here = cut_and_gone_on(tmp_path)
    own, rename = here.checkpoint(0), Path.rename

    def renamed(path: Path, target: Path) -> Path:
        if path == own:
            monkeypatch.setattr(Path, "rename", rename)
            here.roll_back(BACK)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    with pytest.raises(FileNotFoundError):
        here.roll_back(BACK)
    assert read_checkpoint(own).positions == {(TOPIC, 0): 77}


def test_a_cut_that_is_gone_leaves_everything_as_it_is(tmp_path: Path) -> None:
    here = cut_and_gone_on(tmp_path)
    for back in (here.look_at, here.roll_back):
        with pytest.raises(CopyDamaged, match=r"no copy of a shard: was it deleted\?"):
            back(BACK.model_copy(update={"rolls_back_to": "other"}))
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 40}


@pytest.mark.parametrize(
    ("file", "text"),
    [("shard.json", ""), ("shard.json", "{}"), ("offsets/1", ""), ("commits/1", "v1")],
)
def test_a_cut_with_a_damaged_file_leaves_everything_as_it_is(
    tmp_path: Path, file: str, text: str
) -> None:
    """As after a power failure: the cut before is gone back to."""
    here = cut_and_gone_on(tmp_path)
    damaged = tmp_path / "ns/savepoints/first/work/0" / file
    damaged.unlink()
    damaged.write_text(text)
    for back in (here.look_at, here.roll_back):
        with pytest.raises(CopyDamaged, match=f"the checkpoint is damaged: .*{file}"):
            back(BACK)
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 40}


@pytest.mark.parametrize("lost", ["offsets", "commits", "state", "state/0/0/1.delta"])
def test_a_cut_that_lost_files_leaves_everything_as_it_is(tmp_path: Path, lost: str) -> None:
    """What is left of it would be a checkpoint, too: an empty one, or one without its state."""
    here = cut_and_gone_on(tmp_path)
    gone = tmp_path / "ns/savepoints/first/work/0" / lost
    gone.rename(tmp_path / "elsewhere")
    for back in (here.look_at, here.roll_back):
        with pytest.raises(CopyDamaged, match=r"work/0 has .* bytes instead of .*: it lost files"):
            back(BACK)
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 40}
    (tmp_path / "elsewhere").rename(gone)
    here.roll_back(BACK)
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 77}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("v1", "v1"),
        ("-", "-"),
        ("3", "3"),
        ('{"batchWatermarkMs":0}', '{"batchWatermarkMs":0}'),
        ('{"users": {"0": 7}}', '{"users": {"0": 7}}'),
        ('{"t": {"1": 7, "0": 3}}', '{"t": {"1": 8, "0": 9}}'),
        ('{"t": {"0": 3}, "users": {"0": 7}}', '{"t": {"0": 9}, "users": {"0": 7}}'),
    ],
)
def test_positions_from_outside_stay(line: str, expected: str) -> None:
    assert placed(line, {"t": [9, 8]}) == expected
