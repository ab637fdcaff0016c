"""What PEs remove from a volume of copies, which the operator does not see."""

from pathlib import Path

import pytest
from tests.pe_runtime.test_earlier_cuts import cut

from streamgraft_common.repositories import Stored, manifest
from streamgraft_common.repositories.file_store import FileStore
from streamgraft_common.repositories.manifest import COLLECT_SECONDS, GRACE_SECONDS, Share
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.upkeep import Upkeep


class Namespace:
    """The copies of a namespace on a volume."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.folder.mkdir()
        self.store = FileStore(folder)
        self.now = 1e9
        written = self.store.keys

        def keys(prefix: str, *, complete: bool = False) -> list[Stored]:
            found = written(prefix, complete=complete)
            return [Stored(item.key, self.at[item.key]) for item in found]

        self.at: dict[str, float] = {}
        place = self.store._place

        def _place(key: str, data: bytes, *, only_new: bool) -> bool:
            self.at.setdefault(key, self.now)
            return place(key, data, only_new=only_new)

        monkeypatch.setattr(self.store, "keys", keys)
        monkeypatch.setattr(self.store, "_place", _place)

    def copy(self, savepoint: str) -> None:
        """Store a copy of one shard, whose state no other has."""
        source = self.folder.parent / savepoint
        source.mkdir()
        (source / "state").write_text(f"state of {savepoint}")
        Repository(self.store, "ns").upload({Share(savepoint, "u", "work", 0): source}, "{}")

    def upkeep(self) -> Upkeep:
        """Return what a PE keeps up."""
        return Upkeep(self.store, "ns", lambda: self.now)

    def savepoints(self) -> set[str]:
        """Return the savepoints that have a manifest."""
        found = manifest.read("ns", self.store.keys("ns/savepoints/"))
        return {share.savepoint for share in found.shares}

    def blobs(self) -> int:
        """Return how many blobs there are."""
        return len(self.store.keys("ns/blobs/"))


@pytest.fixture
def namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Namespace:
    """A namespace with two old cuts, the one that is kept, and a savepoint of the user's."""
    found = Namespace(tmp_path / "copies", monkeypatch)
    for name in ("j-all-cut-1", "j-all-cut-2", "j-all-cut-3", "mine"):
        found.copy(name)
    return found


def test_earlier_cuts_go_with_their_blobs(namespace: Namespace) -> None:
    upkeep = namespace.upkeep()
    upkeep.begin(cut(3, 3)).join()
    assert namespace.savepoints() == {"j-all-cut-1", "j-all-cut-2", "j-all-cut-3", "mine"}
    namespace.now += GRACE_SECONDS + 1
    upkeep.begin(cut(3, 3)).join()
    assert namespace.savepoints() == {"j-all-cut-3", "mine"}
    assert namespace.blobs() == 2


def test_what_somebody_removed_by_hand_goes_with_its_blobs(namespace: Namespace) -> None:
    namespace.store.delete([Share("mine", "u", "work", 0).key("ns")])
    namespace.now += GRACE_SECONDS + 1
    namespace.upkeep().begin(cut(4, 1, 2, 3, 4)).join()
    assert namespace.blobs() == 3


def test_one_pe_collects_at_a_time(namespace: Namespace) -> None:
    """And leaves no trace of earlier turns."""
    one, other = namespace.upkeep(), namespace.upkeep()
    for upkeep in (one, other, one):
        upkeep.begin(cut(3, 3)).join()
    turns = [item.key for item in namespace.store.keys("ns/turns/")]
    assert turns == [f"ns/turns/{namespace.now // COLLECT_SECONDS:.0f}"]
    namespace.now += GRACE_SECONDS + 1
    other.begin(cut(3, 3)).join()
    assert namespace.savepoints() == {"j-all-cut-3", "mine"}
    again = [item.key for item in namespace.store.keys("ns/turns/")]
    assert again == [f"ns/turns/{namespace.now // COLLECT_SECONDS:.0f}"]


def test_a_volume_that_is_away_fails_nothing(
    namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    namespace.folder.rename(namespace.folder.with_name("away"))
    namespace.upkeep().begin(cut(3, 3)).join()
    assert "old copies could not be removed: there is no folder" in caplog.text
