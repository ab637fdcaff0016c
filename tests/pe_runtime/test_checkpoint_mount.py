"""What is said of the file system that checkpoints lie on."""

from pathlib import Path

import pytest

from streamgraft_pe_runtime.checkpoint_mount import MOUNTS, concern

ROOT = Path("/checkpoints/jobs")
DISK = "/dev/vda / ext4 rw,relatime 0 0\n"
DEFAULTS = "rw,vers=4.2,hard,local_lock=none"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("server:/x /other nfs4 rw 0 0", None),
        (f"server:/x /checkpoints nfs4 {DEFAULTS} 0 0", "lookupcache=none and acdirmax=3"),
        ("server:/x /checkpoints nfs rw,lookupcache=none 0 0", "acdirmax=3"),
        ("server:/x /checkpoints nfs rw,acdirmax=3 0 0", "lookupcache=none"),
        ("server:/x /checkpoints nfs4 rw,lookupcache=none,acdirmin=1,acdirmax=3 0 0", None),
        ("server:/x /checkpoints nfs4 rw,lookupcache=none,actimeo=1 0 0", None),
        ("server:/x /checkpoints nfs4 rw,noac 0 0", None),
        ("s3fs /checkpoints fuse.s3fs rw 0 0", "without hard links"),
        ("server:/x /checkpoints/jobs/.. nfs4 rw 0 0", None),
    ],
)
def test_mounts_that_are_not_fine_are_named(line: str, expected: str | None) -> None:
    found = concern(DISK + line, ROOT)
    assert found is None if expected is None else found is not None and expected in found


def test_the_nearest_mount_counts_and_of_two_the_later() -> None:
    nfs = f"server:/x /checkpoints nfs4 {DEFAULTS} 0 0\n"
    assert concern(nfs + "/dev/b /checkpoints ext4 rw 0 0\n" + DISK, ROOT) is None
    assert concern("/dev/b /checkpoints/jobs ext4 rw 0 0\n" + nfs, ROOT) is None


def test_places_with_spaces_are_read() -> None:
    line = f"server:/x /my\\040files nfs4 {DEFAULTS} 0 0"
    assert concern(DISK + line, Path("/my files/jobs")) is not None


def test_the_mounts_of_this_machine_can_be_read() -> None:
    concern(MOUNTS.read_text(), ROOT)
