"""Shards of a savepoint whose last batch ran after the stages behind them had read to the end.

A query over several shards that died amid a batch has to end it before a shard's checkpoint can be
copied. What that writes is in none of the copies, so such a shard counts as unclean.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from streamgraft_pe_runtime.checkpoint_files import write

_FILE = "late-{}.json"


def note(place: Path, uid: str, shards: Iterable[int]) -> list[int]:
    """Note shards before their batch is run; return all that were noted for a savepoint.

    `place`: the folder of their stage in the savepoint, `uid`: the savepoint's.
    """
    file = place / _FILE.format(uid)
    known = set(json.loads(file.read_text())) if file.exists() else set()
    if new := set(shards) - known:
        place.mkdir(parents=True, exist_ok=True)
        write(file, json.dumps(sorted(known | new)))
    return sorted(known | new)
