"""Copies of checkpoints in repositories: sent, shared, fetched, verified and collected."""

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pe_runtime.test_savepoints import REQUEST, TOPIC, checkpoint, storage

from streamgraft_common.repositories import (
    Collector,
    RepositoryUnavailable,
    Store,
    Stored,
    Unreadable,
    manifest,
)
from streamgraft_common.repositories.file_store import FileStore
from streamgraft_common.repositories.manifest import GRACE_SECONDS, UPLOAD_SECONDS, Share
from streamgraft_common.resources import Saving
from streamgraft_pe_runtime import repository as module
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.protocol import CopyDamaged
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.saved_stages import SHARD_FILE
from streamgraft_pe_runtime.savepoints import Storage

BACK = Saving(savepoint="back", uid="b", shards=[0], rolls_back_to="first", ends={})
FIRST = Share("first", REQUEST.uid, "work", 0)


def later() -> float:
    """Return a time at which nothing is fresh any more."""
    return time.time() + GRACE_SECONDS + 60


@pytest.fixture
def namespace() -> str:
    """The servers are there for several tests."""
    return f"ns-{uuid.uuid4().hex[:8]}"


def folder_of(path: Path, **files: str) -> Path:
    """Return a folder with files."""
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return all files and folders of a folder."""
    return {
        str(item.relative_to(folder)): item.read_bytes() if item.is_file() else None
        for item in folder.rglob("*")
    }


class Counting:
    """A store that says what blobs are written to it."""

    def __init__(self, store: Store) -> None:
        self.written: list[bytes] = []
        self._store = store
        self.get, self.keys = store.get, store.keys
        self.create: Callable[[str, bytes], bool] = store.create
        self.delete = store.delete

    def put(self, key: str, data: bytes) -> None:
        """Write."""
        if "/blobs/" in key:
            self.written.append(data)
        self._store.put(key, data)


def blob_keys(store: Store, namespace: str) -> set[str]:
    return {item.key for item in store.keys(manifest.blobs(namespace))}


def test_a_copy_comes_back_as_it_was(
    store: Store, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With files of several pieces, empty ones and empty folders."""
    monkeypatch.setattr(module, "PIECE_BYTES", 1000)
    source = folder_of(tmp_path / "copy", small="1", empty="", large="".join(map(str, range(2000))))
    (source / "nothing" / "in" / "it").mkdir(parents=True)
    folder_of(source / "state", **{"1.delta": "s" * 1000})
    Repository(store, namespace).upload({FIRST: source}, "{}")
    before = tree(source)
    shutil.rmtree(source)
    Repository(store, namespace).fetch("first", "work", 0, source)
    assert tree(source) == before


def test_what_has_not_changed_is_not_sent_again(
    store: Store, namespace: str, tmp_path: Path
) -> None:
    counted = Counting(store)
    first = folder_of(tmp_path / "1", state="state", log="1")
    Repository(counted, namespace).upload({FIRST: first}, "{}")
    assert sorted(counted.written) == [b"1", b"state"]
    second = folder_of(tmp_path / "2", state="state", log="2")
    # By another process, which knows what the copy before has.
    Repository(counted, namespace).upload({Share("second", "u", "work", 0): second}, "{}")
    assert counted.written[2:] == [b"2"]
    # For another shard nothing before is looked at.
    Repository(counted, namespace).upload({Share("second", "u", "work", 1): second}, "{}")
    assert sorted(counted.written[3:]) == [b"2", b"state"]


def test_a_file_that_is_known_is_not_even_read_again(
    store: Store, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder_of(tmp_path / "1", state="state")
    repository = Repository(store, namespace)
    repository.upload({FIRST: source}, "{}")
    other = tmp_path / "2"
    shutil.copytree(source, other, copy_function=lambda a, b: Path(b).hardlink_to(a))
    monkeypatch.setattr(module, "_pieces", lambda file: pytest.fail(f"{file} is read"))
    repository.upload({Share("second", "u", "work", 0): other}, "{}")


def test_a_share_is_stored_once_and_the_first_manifest_counts(
    store: Store, namespace: str, tmp_path: Path
) -> None:
    """A pod that was given up may still send what it copied."""
    slow, fast = folder_of(tmp_path / "slow", a="slow"), folder_of(tmp_path / "fast", a="fast")
    late = Counting(store)

    def create(key: str, data: bytes) -> bool:
        late.create = store.create
        if key.endswith("/0"):
            Repository(store, namespace).upload({FIRST: fast}, "{}")
        return store.create(key, data)

    repository = Repository(late, namespace)
    repository._check_fence()
    late.create = create
    repository.upload({FIRST: slow}, "{}")
    Repository(store, namespace).fetch("first", "work", 0, tmp_path / "back")
    assert (tmp_path / "back" / "a").read_text() == "fast"


def test_a_store_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    careless = Counting(FileStore(tmp_path))
    careless.create = lambda key, data: True
    with pytest.raises(RepositoryUnavailable, match="ignores conditional writes"):
        Repository(careless, "ns").upload({FIRST: folder_of(tmp_path / "x", a="1")}, "{}")


def test_an_upload_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """What it relied on may be gone."""
    times = iter([0.0, 0.0, UPLOAD_SECONDS + 1])
    repository = Repository(FileStore(tmp_path), "ns", lambda: next(times))
    with pytest.raises(RepositoryUnavailable, match="took longer than 1800 s"):
        repository.upload({FIRST: folder_of(tmp_path / "x", a="1")}, "{}")
    assert manifest.read("ns", FileStore(tmp_path).keys("ns/savepoints/")).shares == {}


def test_a_damaged_copy_on_the_volume_is_made_anew_from_what_is_whole(
    store: Store, namespace: str, tmp_path: Path
) -> None:
    source = folder_of(tmp_path / "copy", a="whole", b="whole too")
    repository = Repository(store, namespace)
    repository.upload({FIRST: source}, "{}")
    whole = (source / "b").stat().st_ino
    (source / "a").write_text("garbage")
    (source / "more").touch()
    repository.fetch("first", "work", 0, source)
    assert tree(source) == {"a": b"whole", "b": b"whole too"}
    assert (source / "b").stat().st_ino == whole


def test_without_an_answer_the_copy_on_the_volume_is_taken_as_it_is(tmp_path: Path) -> None:
    store = FileStore(folder_of(tmp_path / "copies"))
    here = cut(tmp_path / "volume", Repository(store, "ns"))
    new = storage(tmp_path / "volume", "other", "first", copies=Repository(store, "ns"))
    store.delete([FIRST.key("ns")])
    assert here.look_at(BACK).shards == [0]
    shutil.rmtree(tmp_path / "copies")
    assert here.look_at(BACK).shards == [0]
    new.prepare(0)
    assert new.checkpoint(0).is_dir()
    shutil.rmtree(tmp_path / "volume" / "ns" / "savepoints")
    with pytest.raises(RepositoryUnavailable, match="there is no folder"):
        here.look_at(BACK)


@pytest.mark.parametrize("harm", ["garbled", "gone"])
def test_a_blob_that_is_damaged_is_said_and_sent_anew_by_the_next_copy(
    store: Store, namespace: str, tmp_path: Path, harm: str
) -> None:
    source = folder_of(tmp_path / "copy", a="state")
    Repository(store, namespace).upload({FIRST: source}, "{}")
    (key,) = blob_keys(store, namespace)
    store.delete([key])
    if harm == "garbled":
        store.put(key, b"garbage")
    with pytest.raises(CopyDamaged, match=r"blob .* of a is (damaged|missing)"):
        Repository(store, namespace).fetch("first", "work", 0, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    second = Share("second", "u", "work", 0)
    Repository(store, namespace).upload({second: source}, "{}")
    Repository(store, namespace).fetch("second", "work", 0, tmp_path / "back")
    assert tree(tmp_path / "back") == {"a": b"state"}


def test_garbage_goes_and_what_is_shared_stays(
    store: Store, namespace: str, tmp_path: Path
) -> None:
    repository, collector = Repository(store, namespace), Collector(store, namespace)
    repository.upload({FIRST: folder_of(tmp_path / "1", state="state", log="1")}, "{}")
    second = Share("second", "u", "work", 0)
    repository.upload({second: folder_of(tmp_path / "2", state="state", log="2")}, "{}")
    store.put(f"{manifest.blobs(namespace)}left-over", b"of an upload that was given up")
    collector.remove("first", REQUEST.uid)
    assert collector.collect(time.time()) == 0, "whoever uploads now may count on it"
    with pytest.raises(CopyDamaged, match=r"was it deleted\?"):
        repository.fetch("first", "work", 0, tmp_path / "back")
    assert collector.collect(later()) == 2
    assert len(blob_keys(store, namespace)) == 2
    found = manifest.read(namespace, store.keys(manifest.savepoints(namespace)))
    assert (set(found.shares), found.removed, len(found.stages)) == ({second}, {}, 1)
    Repository(store, namespace).fetch("second", "work", 0, tmp_path / "back")
    assert tree(tmp_path / "back") == {"state": b"state", "log": b"2"}


def test_an_upload_under_way_keeps_what_it_counts_on(
    store: Store, namespace: str, tmp_path: Path
) -> None:
    """The copy before is removed, and garbage collected, at the worst moment."""
    collector = Collector(store, namespace)
    Repository(store, namespace).upload({FIRST: folder_of(tmp_path / "1", state="state")}, "{}")
    late = Counting(store)

    def create(key: str, data: bytes) -> bool:
        if key.endswith("/0"):
            collector.remove("first", REQUEST.uid)
            assert collector.collect(time.time() + UPLOAD_SECONDS) == 0
        return store.create(key, data)

    late.create = create
    second = Share("second", "u", "work", 0)
    source = folder_of(tmp_path / "2", state="state")
    repository = Repository(late, namespace)
    repository._fenced = True
    repository.upload({second: source}, "{}")
    assert late.written == [], "it counts on a blob of the copy before"
    collector.collect(later())
    Repository(store, namespace).fetch("second", "work", 0, tmp_path / "back")
    assert tree(tmp_path / "back") == {"state": b"state"}


def test_many_shards_go_by_one_listing(store: Store, namespace: str, tmp_path: Path) -> None:
    """What one of them has sent the next one uses."""
    counted = Counting(store)
    lists: list[str] = []

    def keys(prefix: str, *, complete: bool = False) -> list[Stored]:
        lists.append(prefix)
        return store.keys(prefix, complete=complete)

    counted.keys = keys
    source = folder_of(tmp_path / "1", state="state")
    copies = {Share("first", "u", "work", shard): source for shard in range(3)}
    Repository(counted, namespace).upload(copies, "{}")
    assert lists == [manifest.savepoints(namespace), manifest.blobs(namespace)]
    assert len(blob_keys(store, namespace)) == 1
    for shard in range(3):
        Repository(store, namespace).fetch("first", "work", shard, tmp_path / "back" / str(shard))


def test_no_blob_goes_while_a_manifest_can_not_be_read(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("ns/savepoints/first/uid/work/0", b"{")
    store.put("ns/blobs/a", b"")
    with pytest.raises(Unreadable, match="ns/savepoints/first/uid/work/0 is damaged"):
        Collector(store, "ns").collect(later())
    assert [item.key for item in store.keys("ns/blobs/")] == ["ns/blobs/a"]


def cut(root: Path, copies: Repository) -> Storage:
    """Return the storage of shards that were saved behind batch 1."""
    here = storage(root, "job", copies=copies)
    checkpoint(here.checkpoint(0), TOPIC, 2)
    here.save(REQUEST)
    return here


def started_from_copies(folder: Path) -> Storage:
    """Return the storage of another job, with a shard from a savepoint that the volume has lost."""
    copies = Repository(FileStore(folder_of(folder / "copies")), "ns")
    cut(folder / "volume", copies)
    shutil.rmtree(folder / "volume")
    new = storage(folder / "volume", "other", "first", copies=copies)
    new.prepare(0)
    return new


def test_a_shard_goes_back_though_the_volume_has_lost_the_cut(store: Store, tmp_path: Path) -> None:
    copies = Repository(store, "ns")
    here = cut(tmp_path / "volume", copies)
    shutil.rmtree(tmp_path / "volume" / "ns" / "savepoints")
    checkpoint(here.checkpoint(1), TOPIC, 1)
    shutil.rmtree(here.checkpoint(0))
    try:
        assert here.look_at(BACK).shards == here.roll_back(BACK).shards == [0]
    finally:
        Collector(store, "ns").remove("first", REQUEST.uid)
        Collector(store, "ns").collect(later())
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 10}
    assert blob_keys(store, "ns") == set()


def test_what_is_for_the_volume_alone_is_not_sent(tmp_path: Path) -> None:
    store = FileStore(folder_of(tmp_path / "copies"))
    here = storage(tmp_path / "volume", "job", copies=Repository(store, "ns"))
    checkpoint(here.checkpoint(0), TOPIC, 2)
    here.save(REQUEST.model_copy(update={"repository": False}))
    assert list((tmp_path / "copies").iterdir()) == []
    assert here.look_at(BACK).shards == [0]


def test_a_new_job_starts_from_a_savepoint_that_the_volume_has_lost(tmp_path: Path) -> None:
    new = started_from_copies(tmp_path)
    assert (new.checkpoint(0) / "state" / "0" / "0" / "1.delta").read_text() == "state"
    assert not (new.checkpoint(0) / SHARD_FILE).exists()


def test_copies_that_were_fetched_are_no_savepoint_without_the_repository(tmp_path: Path) -> None:
    """They don't say what their stage is: the next shard must not begin with nothing."""
    new = started_from_copies(tmp_path)
    shutil.rmtree(tmp_path / "copies")
    with pytest.raises(RepositoryUnavailable):
        new.prepare(1)


def test_a_cut_that_lacks_a_shard_is_damaged(tmp_path: Path) -> None:
    store = FileStore(folder_of(tmp_path / "copies"))
    here = storage(tmp_path / "volume", "job", copies=Repository(store, "ns"))
    for shard in (0, 1):
        checkpoint(here.checkpoint(shard), TOPIC, 2 + shard)
    here.save(REQUEST.model_copy(update={"shards": [0, 1]}))
    shutil.rmtree(tmp_path / "volume" / "ns" / "savepoints")
    store.delete([Share("first", REQUEST.uid, "work", 1).key("ns")])
    with pytest.raises(CopyDamaged, match=r"first/.*/work/1 in the repository: was it deleted\?"):
        here.look_at(BACK.model_copy(update={"shards": [0, 1]}))
    assert here.look_at(BACK).shards == [0], "the other one is there"
