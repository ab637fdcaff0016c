"""Folders of files that change as a whole, as the kubelet keeps them, and small atomic files.

A volume's folder holds one symbolic link per file, through `..data`, which is itself a link to a
folder with one version of everything. An update writes a new folder and swaps `..data`.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_CURRENT = "..data"


@dataclass(frozen=True)
class File:
    """Content and permission bits of one file."""

    content: bytes
    mode: int = 0o644


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file so that readers see the old or the new content, never half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(name, mode)
    os.replace(name, path)


def publish(folder: Path, files: Mapping[str, File]) -> None:
    """Make `files` (by relative path) the content of a volume's folder, all at once.

    Nothing is touched if the content is the same already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / _CURRENT
    old = Path(os.path.realpath(link)) if link.is_symlink() else None
    if old is not None and _content(old) == dict(files):
        return
    fresh = Path(tempfile.mkdtemp(dir=folder, prefix="..version_"))
    fresh.chmod(0o755)
    for name, file in files.items():
        target = fresh / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    swap = folder / "..data_new"
    swap.unlink(missing_ok=True)
    swap.symlink_to(fresh.name)
    swap.replace(link)
    _link_names(folder, {name.split("/")[0] for name in files})
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _content(version: Path) -> dict[str, File]:
    return {
        str(path.relative_to(version)): File(path.read_bytes(), path.stat().st_mode & 0o777)
        for path in version.rglob("*")
        if path.is_file()
    }


def _link_names(folder: Path, names: set[str]) -> None:
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{_CURRENT}/{name}")
