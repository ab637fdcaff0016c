"""A store in a folder whose file system fails now and then, as a network's does."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgraft_common.repositories import Collector, RepositoryUnavailable, manifest
from streamgraft_common.repositories.file_store import FileStore
from streamgraft_common.repositories.manifest import (
    GRACE_SECONDS,
    Manifest,
    Piece,
    SavedFile,
    Share,
)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """A store with a cut, and the blob that it needs."""
    piece = Piece(sha256="a" * 64, size=1, upload="u")
    document = Manifest(files=[SavedFile(path="a", pieces=[piece])]).model_dump_json(by_alias=True)
    store = FileStore(tmp_path)
    store.put(manifest.blobs("ns") + piece.name, b"x")
    store.create(Share("cut", "uid", "work", 0).key("ns"), document.encode())
    return store


def failing(function: Callable[..., Any], number: int, at: str) -> Callable[..., Any]:
    """Return a function of the system that fails for paths that end so."""

    def fail(path: Any, *args: Any, **options: Any) -> Any:
        if str(path).rstrip("/").endswith(at):
            raise OSError(number, os.strerror(number), str(path))
        return function(path, *args, **options)

    return fail


@pytest.mark.parametrize("at", ["ns/savepoints", "cut/uid/work"])
def test_a_folder_that_can_not_be_listed_is_no_empty_one(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: str
) -> None:
    """Blobs that kept cuts need would be garbage."""
    later = (tmp_path / "ns").stat().st_mtime + GRACE_SECONDS + 60
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing(os.scandir, errno.ESTALE, at))
        with pytest.raises(RepositoryUnavailable, match="Stale file handle"):
            Collector(store, "ns").collect(later)
    assert Collector(store, "ns").collect(later) == 0
    assert len(store.keys(manifest.blobs("ns"))) == 1


def test_a_file_that_can_not_be_asked_for_is_no_missing_one(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "stat", failing(Path.stat, errno.EIO, "work/0"))
    with pytest.raises(RepositoryUnavailable, match="Input/output error"):
        store.keys("ns/savepoints/")


def test_what_another_removes_meanwhile_is_not_there(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", failing(os.scandir, errno.ENOENT, "cut/uid"))
    assert store.keys("ns/savepoints/") == []
