"""Copies of checkpoints: into a savepoint, and out of one.

A query that was stopped at a batch boundary needs of its logs the last two entries, and its state.
Spark never changes a file of a checkpoint once it is there, so a copy is made of hard links where
the file system has them: it costs as much as its files are many, whatever their size.

A copy is made beside its place and renamed when it is whole, so no part of one is taken for it.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import SavedStage, Saving
from streamgraft_common.savepoints import NotRestorable, match, stage_of
from streamgraft_pe_runtime.positions import read_checkpoint

STAGE_FILE = "stage.json"
SHARD_FILE = "shard.json"
_KEPT_ENTRIES = 2
"""Spark reads the entry before the last one, too, when it goes on."""
_CHECKSUM = ".{}.crc"


class NotSaved(Exception):
    """A checkpoint can't be copied as it is; the message says why."""


class Storage:
    """The checkpoints of our stage, and the savepoints beside them. All calls block."""

    def __init__(self, root: Path, metadata: PeMetadata, adl: Adl) -> None:
        self._root = root
        self._metadata = metadata
        self._stage = stage_of(metadata, adl)

    def checkpoint(self, shard: int) -> Path:
        """Return where the checkpoint of a shard is."""
        return self._root / self._metadata.checkpoint_path / str(shard)

    def save(self, wish: Saving) -> int:
        """Copy checkpoints into a savepoint; return the size of the copies in bytes.

        What was copied for this savepoint before is not copied again. Raises NotSaved or OSError.
        """
        folder = self._root / names.savepoint_path(self._metadata.namespace, wish.savepoint)
        place = folder / self._stage.name
        place.mkdir(parents=True, exist_ok=True)
        _write(place / STAGE_FILE, self._stage.model_dump_json(by_alias=True, indent=1))
        total = 0
        for shard in wish.shards:
            target = place / str(shard)
            size = _saved_size(target, wish.uid)
            if size is None:
                size = _save_shard(self.checkpoint(shard), target, wish.uid)
            total += size
        return total

    def prepare(self, shard: int) -> None:
        """Make a shard's checkpoint from the job's savepoint, unless there is one already.

        A stage that the savepoint knows nothing of starts empty. Raises NotRestorable or OSError.
        """
        checkpoint = self.checkpoint(shard)
        if self._metadata.savepoint is None or checkpoint.exists():
            return
        folder = self._root / self._metadata.savepoint
        if not folder.is_dir():
            raise NotRestorable(f"there is no savepoint at {folder}: was it deleted?")
        old = match(saved_stages(folder), self._stage)
        if old is None:
            return
        source = folder / old.name / str(shard)
        if not (source / SHARD_FILE).is_file():
            raise NotRestorable(f"savepoint {folder.name} lacks shard {shard} of stage {old.name}")
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        with _Beside(checkpoint) as copy:
            _link_tree(source, copy, frozenset({SHARD_FILE}))
            _rewrite_offsets(copy / "offsets", renamed_topics(old, self._stage))


def saved_stages(folder: Path) -> list[SavedStage]:
    """Return the stages that a savepoint's folder holds."""
    files = sorted(folder.glob(f"*/{STAGE_FILE}"))
    return [SavedStage.model_validate_json(file.read_text()) for file in files]


def renamed_topics(old: SavedStage, new: SavedStage) -> dict[str, str]:
    """Return the topics of the job's own that a stage read → those that it reads now. Pure.

    The old ones were read to their ends, the new ones are fresh: positions in them begin at 0.
    """
    now = {item.stream: item.topic for item in new.inputs}
    return {item.topic: now[item.stream] for item in old.inputs if not item.external}


def rewritten(lines: Sequence[str], topics: Mapping[str, str]) -> list[str]:
    """Return an entry of an offset log with the positions in some topics set to 0. Pure.

    `topics`: old name → new name. Line 0 is the version, line 1 the batch, then one per source.
    """
    return [*lines[:2], *(_rewritten(line, topics) for line in lines[2:])]


def _rewritten(line: str, topics: Mapping[str, str]) -> str:
    try:
        document = json.loads(line)
    except ValueError:  # a source without offsets is a dash
        return line
    if not isinstance(document, dict) or not document.keys() & topics.keys():
        return line
    return json.dumps(
        {topics[topic]: dict.fromkeys(partitions, 0) for topic, partitions in document.items()}
    )


def _save_shard(checkpoint: Path, target: Path, uid: str) -> int:
    if checkpoint.exists() and not read_checkpoint(checkpoint).clean:
        raise NotSaved(f"{checkpoint} has a batch that was begun and not committed")
    if target.exists():  # of an earlier savepoint of this name
        shutil.rmtree(target)
    with _Beside(target) as copy:
        if checkpoint.exists():
            _link_tree(checkpoint, copy, frozenset({"offsets", "commits"}))
            for log in ("offsets", "commits"):
                _link_entries(checkpoint / log, copy / log)
        size = sum(file.stat().st_size for file in copy.rglob("*") if file.is_file())
        _write(copy / SHARD_FILE, json.dumps({"savepoint": uid, "sizeBytes": size}))
    return size


def _saved_size(target: Path, uid: str) -> int | None:
    """Return the size of what was saved already for this very savepoint, else None."""
    try:
        document = json.loads((target / SHARD_FILE).read_text())
    except FileNotFoundError:
        return None
    return int(document["sizeBytes"]) if document["savepoint"] == uid else None


class _Beside:
    """A folder that gets its name when the block ends without an error."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._copy = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))

    def __enter__(self) -> Path:
        return self._copy

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self._copy.chmod(0o755)
            self._copy.rename(self._target)
        else:
            shutil.rmtree(self._copy, ignore_errors=True)


def _link_tree(source: Path, target: Path, leave: frozenset[str]) -> None:
    """Link all files of a folder into another one, but for entries of its top level in `leave`."""
    shutil.copytree(
        source,
        target,
        copy_function=_link,
        dirs_exist_ok=True,
        ignore=lambda folder, names: leave.intersection(names) if folder == str(source) else (),
    )


def _link_entries(source: Path, target: Path) -> None:
    """Link the last entries of a log."""
    target.mkdir(exist_ok=True)
    numbers = sorted(int(file.name) for file in source.glob("[0-9]*") if file.name.isdigit())
    for number in numbers[-_KEPT_ENTRIES:]:
        for name in (str(number), _CHECKSUM.format(number)):
            if (source / name).exists():
                _link(str(source / name), str(target / name))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


def _rewrite_offsets(log: Path, topics: Mapping[str, str]) -> None:
    for entry in log.glob("[0-9]*") if topics else ():
        lines = rewritten(entry.read_text().splitlines(), topics)
        (log / _CHECKSUM.format(entry.name)).unlink(missing_ok=True)
        entry.unlink()  # a link: the savepoint's own must stay as it is
        entry.write_text("\n".join(lines))


def _write(file: Path, text: str) -> None:
    copy = file.with_name(f".{file.name}-{os.getpid()}")
    copy.write_text(text)
    copy.replace(file)
