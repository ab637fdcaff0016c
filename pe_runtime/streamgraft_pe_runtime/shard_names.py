"""Who has a shard: names in its folder, of which each is made by one owner only.

`<stage>/<shard>/queries/<n>` names the query over several shards that has it, or nobody: then
whoever made it runs it alone, or nobody does. The newest n counts, and those before go. So a name
that is gone tells its owner that it has the shard no more, whatever its folder is by now: a
rollback puts another folder in its place, with a name of its own. The checkpoint's files are made
only while the name is there (scala/shards/ExclusiveCheckpointFiles.scala).
"""

import errno
import json
import logging
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamgraft_pe_runtime import exclusive_files
from streamgraft_pe_runtime.checkpoint_files import entries
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged, reading
from streamgraft_pe_runtime.protocol.failures import FENCED
from streamgraft_pe_runtime.query_logs import newest

log = logging.getLogger(__name__)

QUERIES = "queries"


class TakenByAnother(Exception):
    """Another owner has taken a shard over at the same time."""

    def __init__(self, shard: Path) -> None:
        super().__init__(f"{FENCED[0]}: another owner has taken over shard {shard.name}")


@dataclass(frozen=True)
class Holder:
    """Who has a shard: a query, or (None) nobody or one that runs it alone."""

    name: Path
    """Its number is -1 if there is none."""
    query: Path | None
    """Its checkpoint."""

    @property
    def number(self) -> int:
        """The number of the name."""
        return int(self.name.name)


def holder(shard: Path) -> Holder:
    """Return who has a shard, by its folder. Raises CheckpointDamaged, OSError."""
    names = shard / QUERIES
    number = newest(names)
    file = names / str(number)
    if number < 0:
        return Holder(file, None)
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        if newest(names) == number:  # an NFS client remembers it
            raise
        return holder(shard)  # there is a newer name since
    with reading(file):
        query = json.loads(text)["query"]
    return Holder(file, shard.with_name(QUERIES) / query if query else None)


def query_of(shard: Path) -> Path | None:
    """Return the query that has a shard, None if there is none or its names do not tell: that may
    be why another folder takes the place of this one. Raises OSError."""
    try:
        return holder(shard).query
    except CheckpointDamaged as error:
        log.warning("the query that has shard %s is not known: %s", shard.name, error)
        return None


def check_held(shard: Path, known: Holder) -> None:
    """Raise TakenByAnother if a shard is another owner's by now."""
    if holder(shard) != known:
        raise TakenByAnother(shard)


def name(shard: Path, before: Holder, query: Path | None) -> Path:
    """Name a shard's query under the number behind its holder's. Raises TakenByAnother."""
    names, number = shard / QUERIES, before.number + 1
    # Who comes late may find its number free, as the names before the newest go; or no folder, as a
    # rollback is about to replace it.
    if newest(names) != before.number:
        raise TakenByAnother(shard)
    if before.number < 0:
        names.mkdir(parents=True, exist_ok=True)
    file = names / str(number)
    created = _create(names, number, query)
    if not created or newest(names) != number:
        if created:  # or who had the name before would have it again
            file.unlink(missing_ok=True)
        raise TakenByAnother(shard)
    for earlier in entries(names):
        if earlier < number:
            (names / str(earlier)).unlink(missing_ok=True)
    return file


def held(shards: Iterable[Path]) -> list[Path]:
    """Return the names that shards have now. Raises CheckpointDamaged, OSError."""
    return [found.name for found in map(holder, shards) if found.number >= 0]


def hold(session: SparkSession, checkpoint: Path, names: Iterable[Path]) -> None:
    """Have the driver make files in the shards' folders, and the sink of the query that is to run
    them take its transactional id, only while these names are there."""
    jvm: Any = session._jvm
    for file in names:
        shard = file.parent.parent
        jvm.org.apache.spark.sql.streamgraft.ShardNames.hold(str(checkpoint), str(shard), str(file))


def aside(shard: Path, rollback: str) -> Path:
    """Return where a rollback puts a shard's folder before another one takes its place."""
    return shard.with_name(f".{shard.name}-before-{rollback}")


def left_aside(shard: Path) -> list[Path]:
    """Return folders of a shard whose rollback was cut off before it had another.

    That one has a name from the start. What has none was made by an owner that came late.
    """
    if newest(shard / QUERIES) >= 0:
        return []
    return list(shard.parent.glob(aside(shard, "*").name))


def take_back(shard: Path) -> None:
    """Undo such a rollback. The next one finds then whom it has to fence, and which names were.

    Raises OSError.
    """
    while left := left_aside(shard):
        # Of one that came to its end some files may be there still.
        before = max(left, key=lambda folder: newest(folder / QUERIES))
        try:
            before.rename(shard)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # as when the next pod has taken it back
        else:
            return
        # What an owner has made that came late; or, if we do, the folder of one that runs. Its name
        # is the newest of all, so that is taken back then, by the next pod if we die here.
        with suppress(FileNotFoundError):
            shard.rename(aside(shard, uuid.uuid4().hex))


def name_anew(copy: Path, replaced: Path) -> None:
    """Name nobody in a copy that takes the place of a shard's folder, under a number that nobody
    had before: a takeover that has read the folder's is late then.

    `replaced`: the folder, where nobody finds it any more to make another name. Raises OSError.
    """
    number = max(newest(folder / QUERIES) for folder in (copy, replaced)) + 1
    shutil.rmtree(copy / QUERIES, ignore_errors=True)  # of before
    (copy / QUERIES).mkdir()  # not the copy, which the next pod may have removed
    _create(copy / QUERIES, number, None)


def _create(names: Path, number: int, query: Path | None) -> bool:
    text = json.dumps({"query": query.name if query else None})
    # Those before go at once: an empty one, as a power failure may leave, would be the only one.
    return exclusive_files.create_in(names, str(number), text, durable=True)
