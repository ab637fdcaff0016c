"""Checkpoints on NFS, by Linux' own server and client: the fence holds, whatever clients remember.

The guest's kernel is Debian's user-mode-linux: not the machine's, which may have no NFS.
"""

import json
from pathlib import Path

import pytest
from tests.nfs import guest

from streamgraft_pe_runtime.checkpoint_mount import FOLDER_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.long]

OWNERS = Path(__file__).with_name("owners.py")
NAMES = 30


@pytest.mark.parametrize(
    ("options", "remembered"),
    [("", 70.0), (f",lookupcache=none,acdirmax={FOLDER_SECONDS}", 1.0)],
    ids=["caches on", "as documented"],
)
def test_of_two_owners_one_makes_the_entry(options: str, remembered: float) -> None:
    """Both at once, thirty times; then one that remembers that there is none."""
    found = json.loads(guest.run(options, OWNERS, str(NAMES)))
    assert found["names"] == NAMES
    assert found["both_or_none"] == found["read_wrongly"] == 0
    assert found["remembered_seconds"] < remembered
