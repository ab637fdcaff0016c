"""The files in which a sink puts batches aside, and those that are final."""

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bench.traffic import Arrival


@dataclass(frozen=True)
class BatchFile:
    """What a batch of a shard has put aside."""

    shard: int
    incarnation: str
    """Of the checkpoint that it was written from: another one after a rollback."""
    results: list[Arrival]


class BatchFiles:
    """All of them, wherever they are now.

    A file is `staged/SHARD/INCARNATION/BATCH` first, and `final/SHARD_INCARNATION_BATCH` after the
    cut that it is in.
    """

    def __init__(self, folder: Path) -> None:
        self._staged, self._final = folder / "staged", folder / "final"
        self._staged.mkdir(parents=True)
        self._final.mkdir()
        self._seen: dict[str, BatchFile] = {}

    def look(self) -> None:
        """Read what is new."""
        for path in chain(self._staged.glob("*/*/[0-9]*"), self._final.iterdir()):
            where = path.name if path.parent == self._final else "_".join(path.parts[-3:])
            if where not in self._seen:
                with suppress(FileNotFoundError):  # made final meanwhile: seen there the next time
                    self._seen[where] = _read(path, where)

    def incarnations(self) -> set[str]:
        """Return those that have put something aside so far."""
        self.look()
        return {file.incarnation for file in self._seen.values()}

    def newest_id(self) -> int:
        """Return the largest id that was put aside, -1 before any."""
        self.look()
        ids = (item.id for file in self._seen.values() for item in file.results)
        return max(ids, default=-1)

    def flowing(self, shards: int, first: int, old: Collection[str]) -> float | None:
        """Return when the last of so many shards has put aside a record from `first` on, in an
        incarnation that is not old; None as long as one has not."""
        self.look()
        times: dict[int, float] = {}
        for file in self._seen.values():
            fresh = file.incarnation not in old and any(item.id >= first for item in file.results)
            if fresh and (at := file.results[0].at) < times.get(file.shard, float("inf")):
                times[file.shard] = at
        return max(times.values()) if len(times) == shards else None

    def final(self) -> list[Arrival]:
        """Return all results that are final, as they are now."""
        files = sorted(self._final.iterdir())
        return [item for path in files for item in _read(path, path.name).results]


def _read(path: Path, where: str) -> BatchFile:
    shard, incarnation, _ = where.split("_")
    with path.open() as file:
        at, rows = path.stat().st_mtime, json.load(file)
    results = [Arrival(at, row["id"], row["key"], row["count"]) for row in rows]
    return BatchFile(int(shard), incarnation, results)
