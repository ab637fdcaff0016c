"""What the file system below the checkpoints may get wrong, by how it is mounted.

The fence needs one thing of it: that `link(2)` makes a name or fails, which NFS leaves to the
server. What its clients remember of folders does no harm, but a new owner that remembers an old one
fails and tries again until that is forgotten, for up to a minute.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOUNTS = Path("/proc/self/mounts")
FOLDER_SECONDS = 3
"""Clients may remember folders for so long: a hand-over takes about that."""
_NEVER_LINKS = ("fuse.s3fs", "fuse.gcsfuse", "fuse.blobfuse", "fuse.mount-s3")
"""Object stores in the dress of a file system: they copy where a link should be made, or fail."""


@dataclass(frozen=True)
class Mount:
    """One line of `/proc/self/mounts`."""

    at: PurePosixPath
    kind: str
    options: dict[str, str]


def concern(mounts: str, root: Path) -> str | None:
    """Return what to know of the mount that a folder lies on, and what to do; None if it is fine.

    `mounts`: the text of `/proc/self/mounts`.
    """
    below = [mount for mount in _parsed(mounts) if root.is_relative_to(mount.at)]
    if not below:
        return None
    # Of two mounts at one place the later hides the earlier.
    mount = max(enumerate(below), key=lambda item: (len(item[1].at.parts), item[0]))[1]
    if mount.kind in _NEVER_LINKS:
        return (
            f"checkpoints lie on {mount.kind}, an object store without hard links: two owners of a"
            " shard could both write; use a file system"
        )
    if mount.kind not in ("nfs", "nfs4") or _forgets_soon(mount.options):
        return None
    return (
        f"checkpoints lie on {mount.kind}, whose client remembers folders: hand-overs may take a"
        f" minute; mount it with lookupcache=none and acdirmax={FOLDER_SECONDS}"
    )


def _forgets_soon(options: dict[str, str]) -> bool:
    if "noac" in options:
        return True
    longest = options.get("actimeo", options.get("acdirmax", "60"))
    seconds = int(longest) if longest.isdecimal() else 60
    return options.get("lookupcache", "all") == "none" and seconds <= FOLDER_SECONDS


def _parsed(mounts: str) -> Iterator[Mount]:
    for line in mounts.splitlines():
        _, at, kind, options, *_ = line.split(" ")
        pairs = (option.partition("=") for option in options.split(","))
        # Spaces and the like are written as octal numbers.
        place = at.encode().decode("unicode_escape")
        yield Mount(PurePosixPath(place), kind, {name: value for name, _, value in pairs})
