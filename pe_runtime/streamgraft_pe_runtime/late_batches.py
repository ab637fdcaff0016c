"""Shards of a savepoint whose last batch ran after the stages behind them had read to the end.

A query over several shards that died amid a batch has to end it before a shard's checkpoint can be
copied. What that writes is in none of the copies, so such a shard counts as unclean.
"""

from collections.abc import Iterable
from pathlib import Path

from streamgraft_pe_runtime.checkpoint_files import write

_FILE = "late-{}-{}"
"""Each shard has one: the channels of a region note theirs at the same time."""


def note(place: Path, uid: str, shards: Iterable[int]) -> None:
    """Note shards of a savepoint before their batch is run.

    `place`: the folder of their stage in the savepoint, `uid`: the savepoint's.
    """
    for shard in shards:
        place.mkdir(parents=True, exist_ok=True)
        write(place / _FILE.format(uid, shard), "")


def noted(place: Path, uid: str, shards: Iterable[int]) -> list[int]:
    """Return those of some shards that were noted for a savepoint, by whichever PE."""
    return [shard for shard in shards if (place / _FILE.format(uid, shard)).exists()]
