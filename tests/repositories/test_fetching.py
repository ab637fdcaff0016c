"""Copies that are on the volume as well: whose they are, and who else works on them."""

import shutil
from pathlib import Path

import pytest
from tests.pe_runtime.test_savepoints import REQUEST, TOPIC, checkpoint, storage
from tests.repositories.test_copies import BACK, FIRST, cut, folder_of, started_from_copies

from streamgraft_common import names
from streamgraft_common.repositories import Collector
from streamgraft_common.repositories.file_store import FileStore
from streamgraft_common.repositories.manifest import Manifest
from streamgraft_common.restore import NotRestorable
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.protocol import CopyDamaged
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.saved_stages import SHARD_FILE, saved_stages


def test_a_damaged_copy_goes_at_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that dies amid it leaves nothing that looks like a copy."""
    store = FileStore(folder_of(tmp_path / "copies"))
    here = cut(tmp_path / "volume", Repository(store, "ns"))
    copy = tmp_path / "volume/ns/savepoints/first/work/0"
    (copy / "state/0/0/1.delta").unlink()
    removed: list[str] = []
    monkeypatch.setattr(
        "shutil.rmtree", lambda folder, ignore_errors: removed.append(Path(folder).name)
    )
    here.look_at(BACK)
    assert (copy / "state/0/0/1.delta").read_text() == "state"
    assert [name[:11] for name in removed] == [".0-damaged-"]
    assert [stage.name for stage in saved_stages(copy.parent.parent)] == ["work"]


def test_an_old_namesake_does_not_replace_the_copy_on_the_volume(tmp_path: Path) -> None:
    """Cuts of a job of this name from before, which nobody has marked."""
    store = FileStore(folder_of(tmp_path / "copies"))
    cut(tmp_path / "before", Repository(store, "ns"))
    here = storage(tmp_path / "volume", "job", copies=Repository(store, "ns"))
    checkpoint(here.checkpoint(0), TOPIC, 5)
    here.save(REQUEST.model_copy(update={"uid": "2", "repository": False}))
    own = here.checkpoint(0)
    assert here.look_at(BACK).shards == here.roll_back(BACK).shards == [0]
    assert read_checkpoint(own).positions == {(TOPIC, 0): 40}
    fork = storage(tmp_path / "volume", "job2", "first", copies=Repository(store, "ns"))
    fork.prepare(0)
    assert sorted(file.name for file in fork.checkpoint(0).glob("commits/[0-9]*")) == ["3", "4"]
    copy = tmp_path / "volume/ns/savepoints/first/work/0"
    shutil.rmtree(copy)
    with pytest.raises(CopyDamaged, match="there is no first/2 in the repository"):
        here.look_at(BACK.model_copy(update={"uid": "c"}))
    # What can't say whose it is goes by its name.
    (copy.parent.parent / names.SAVEPOINT_FILE).write_text("")
    assert here.look_at(BACK.model_copy(update={"uid": "c"})).shards == [0]


def test_copies_that_were_fetched_are_no_savepoint_once_it_is_deleted(tmp_path: Path) -> None:
    """It may be before all shards of the new job have started."""
    new = started_from_copies(tmp_path)
    Collector(FileStore(tmp_path / "copies"), "ns").remove("first", REQUEST.uid)
    for _ in range(2):
        with pytest.raises(NotRestorable, match=r"savepoints/first is there .*: was it deleted\?"):
            new.prepare(1)
        # And if another stage's are all that was there.
        other = tmp_path / "volume/ns/savepoints/first/other"
        (other / "0").mkdir(parents=True, exist_ok=True)
        (other / "0" / SHARD_FILE).write_text('{"savepoint": "1"}')
        (other / "stage.json").write_text('{"name": "other", "shards": 1, "operators": ["x"]}')
    assert not new.checkpoint(1).exists()


@pytest.mark.parametrize("moment", ["judging", "renaming"])
def test_what_another_has_put_in_place_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Two processing elements fetch one damaged copy, and the other one works on it already."""
    store = FileStore(folder_of(tmp_path / "copies"))
    source = folder_of(tmp_path / "copy", a="whole")
    ours, other = Repository(store, "ns"), Repository(store, "ns")
    ours.upload({FIRST: source}, "{}")
    (source / "a").write_text("garbage")
    is_whole, rename = ours._is_whole, Path.rename
    placed: list[int] = []

    def fetched_by_another() -> None:
        other.fetch("first", "work", 0, source)
        placed.append(source.stat().st_ino)

    def judged(folder: Path, wanted: Manifest) -> bool:
        found = is_whole(folder, wanted)
        if not placed and any(tmp_path.glob(".copy-*/a")):
            fetched_by_another()
        return found

    def renamed(path: Path, target: Path) -> Path:
        if path == source and not placed:
            monkeypatch.setattr(Path, "rename", rename)
            fetched_by_another()
        return rename(path, target)

    if moment == "judging":
        monkeypatch.setattr(ours, "_is_whole", judged)
    else:
        monkeypatch.setattr(Path, "rename", renamed)
    ours.fetch("first", "work", 0, source)
    assert placed == [source.stat().st_ino]
    assert (source / "a").read_text() == "whole"
    assert list(tmp_path.glob(".copy*")) == []


def test_what_another_puts_in_place_at_the_end_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(folder_of(tmp_path / "copies"))
    source = folder_of(tmp_path / "copy", a="whole")
    ours = Repository(store, "ns")
    ours.upload({FIRST: source}, "{}")
    make_way = ours._make_way

    def too_late(folder: Path, wanted: Manifest, aside: Path) -> None:
        make_way(folder, wanted, aside)
        Repository(store, "ns").fetch("first", "work", 0, source)

    monkeypatch.setattr(ours, "_make_way", too_late)
    shutil.rmtree(source)
    ours.fetch("first", "work", 0, source)
    assert (source / "a").read_text() == "whole"
    assert list(tmp_path.glob(".copy*")) == []
