"""The checkpoint of a key group of another division of the keys, made from those of the old ones.

It begins anew, as if its first batch had left the state that its keys have. All that was written to
the old groups' topics was read, so it begins its own topic at the start.

A key group takes the earliest watermark of those that it comes from: what is not too late for its
own old group is not too late now.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from streamgraft_common.key_groups import Split
from streamgraft_common.resources import SavedState
from streamgraft_common.restore import NotRestorable
from streamgraft_pe_runtime.checkpoint_files import Beside, entries, link
from streamgraft_pe_runtime.cuts import Written, inherit

_PARTITIONS = "spark.sql.shuffle.partitions"


class StateStores(Protocol):
    """Reads and writes the state of checkpoints that no query runs on."""

    def describe(self, checkpoint: Path) -> list[SavedState]:
        """Return the stateful parts of a query, by one of its checkpoints."""

    def gather(self, sources: Mapping[int, Path], target: Path, split: Split) -> None:
        """Write the first version of a checkpoint's state: the rows of a group out of old ones."""


def redistribute(
    sources: Mapping[int, Path],
    target: Path,
    split: Split,
    topics: Mapping[str, str],
    stores: StateStores,
    written: Sequence[Written] = (),
) -> None:
    """Make a checkpoint, unless none of the old groups has ever had a record.

    `sources`: old group → its checkpoint; `topics`: old name → new name, of all inputs; `written`:
    what a sink that takes part in cuts has got of the old groups.
    Raises NotRestorable if their state can't be put together.
    """
    ran = {group: source for group, source in sources.items() if entries(source / "commits")}
    if not ran:
        return
    logs = {group: _last(source) for group, source in ran.items()}
    counts = {json.loads(offsets[1])["conf"].get(_PARTITIONS) for offsets, _ in logs.values()}
    if len(counts) > 1:
        raise NotRestorable(
            f"key groups {', '.join(map(str, ran))} have different numbers of state partitions"
            f" ({_PARTITIONS}), whose states can't be put together: restore with"
            f" {split.old_groups} key groups"
        )
    watermark = earliest(_watermark(*log) for log in logs.values())
    first = min(ran)
    offsets, commits = logs[first]
    with Beside(target) as copy:
        _write_entry(copy / "offsets", first_offsets(offsets, topics, split.group, watermark))
        _write_entry(copy / "commits", first_commit(commits, watermark))
        (copy / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        _link_metadata(ran[first] / "state", copy / "state")
        stores.gather(ran, copy, split)
        inherit(copy, written)


def earliest(watermarks: Iterable[int]) -> int:
    """Return the watermark (ms) to go on with; 0 stands for none yet, and has no say. Pure."""
    return min((item for item in watermarks if item), default=0)


def first_offsets(
    lines: Sequence[str], topics: Mapping[str, str], group: int, watermark: int
) -> list[str]:
    """Return the first entry of an offset log, after the last one of another log. Pure.

    Line 0 is the version, line 1 the batch, then one per source.
    """
    batch = {**json.loads(lines[1]), "batchWatermarkMs": watermark}
    return [lines[0], json.dumps(batch), *(_at_start(line, topics, group) for line in lines[2:])]


def first_commit(lines: Sequence[str], watermark: int) -> list[str]:
    """Return the first entry of a commit log, after the last one of another log. Pure."""
    if lines[0] != "v1":
        raise NotRestorable(
            f"the state's checkpoints have format {lines[0]} (spark.sql.streaming.stateStore."
            "checkpointFormatVersion), of which only v1 can be restored with other key groups"
        )
    return [lines[0], json.dumps({**json.loads(lines[1]), "nextBatchWatermarkMs": watermark})]


def _at_start(line: str, topics: Mapping[str, str], group: int) -> str:
    if not line.startswith("{"):  # a source without offsets is a dash
        return line
    return json.dumps({topics[topic]: {str(group): 0} for topic in json.loads(line)})


def _watermark(offsets: Sequence[str], commits: Sequence[str]) -> int:
    batch, commit = json.loads(offsets[1]), json.loads(commits[1])
    return int(max(batch["batchWatermarkMs"], commit["nextBatchWatermarkMs"]))


def _last(checkpoint: Path) -> tuple[list[str], list[str]]:
    """Return the last entries of the offset and the commit log."""
    last = entries(checkpoint / "commits")[-1]
    texts = [(checkpoint / log / str(last)).read_text() for log in ("offsets", "commits")]
    return texts[0].splitlines(), texts[1].splitlines()


def _write_entry(log: Path, lines: Sequence[str]) -> None:
    log.mkdir()
    (log / "0").write_text("\n".join(lines))


def _link_metadata(source: Path, target: Path) -> None:
    """Link what is said of the stores of all partitions, but none of their rows."""
    for file in source.rglob("_metadata/*"):
        if file.is_file():
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            link(str(file), str(place))
