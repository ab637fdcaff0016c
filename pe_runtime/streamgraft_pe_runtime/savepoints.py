"""Copies of checkpoints: into a savepoint, and out of one.

Of its logs a query needs the last entries only, and its state. If its pod died within a batch, the
copy has that batch begun and not committed, as the checkpoint has it: Spark runs it again, from the
same positions. Spark never changes a file of a checkpoint once it is there, so a copy is made of
hard links where the file system has them: it costs as much as its files are many, not their size.
"""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.key_groups import Split, heirs, origins
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.repositories import RepositoryUnavailable
from streamgraft_common.repositories.manifest import Share
from streamgraft_common.resources import Saved, SavedStage, SavedState, Saving
from streamgraft_common.restore import NotRestorable, match, stage_of
from streamgraft_pe_runtime import arrangement, cuts, modes, shard_names, topic_ids
from streamgraft_pe_runtime.checkpoint_files import (
    LEDGERS,
    Beside,
    edit,
    entries,
    link_entries,
    link_tree,
    remove_left,
    write,
)
from streamgraft_pe_runtime.checkpoint_health import DAMAGED, CheckpointDamaged, check, reading
from streamgraft_pe_runtime.copied_logs import (
    placed,
    relocated,
    renamed_topics,
    rewritten,
    rewritten_line,
)
from streamgraft_pe_runtime.earlier_cuts import remove_earlier
from streamgraft_pe_runtime.lost_checkpoints import ROLLED_BACK
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.protocol import CopyDamaged
from streamgraft_pe_runtime.redistribution import StateStores, redistribute
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.saved_stages import (
    SHARD_FILE,
    STAGE_FILE,
    is_saved,
    known_uid,
    lacks_stages,
    noted,
    saved_stages,
    uid_of,
)

log = logging.getLogger(__name__)

LeftBehind = Callable[[Path | None], AbstractContextManager[object]]
"""JointCheckpoints.left_behind."""


class _BackMeanwhile(Exception):
    """A shard was put back while its copy was made."""


class Storage:
    """The checkpoints of our stage, and the savepoints beside them. All calls block."""

    def __init__(
        self,
        root: Path,
        metadata: PeMetadata,
        adl: Adl,
        stores: StateStores,
        sink: cuts.CutSink | None = None,
        copies: Repository | None = None,
    ) -> None:
        """`sink`: that of the stage, if it takes part in cuts. `copies`: where savepoints are kept
        besides."""
        self._root = root
        self._metadata = metadata
        self._stage = stage_of(metadata, adl)
        self._stores = stores
        self._sink = sink
        self._copies = copies

    @property
    def folder(self) -> Path:
        """The folder with the checkpoints of our stage."""
        return self._root / self._metadata.checkpoint_path

    def checkpoint(self, shard: int) -> Path:
        """Return where the checkpoint of a shard is that has a query of its own."""
        return self.folder / str(shard)

    def save(self, request: Saving) -> Saved:
        """Copy checkpoints into a savepoint; say what there is of it.

        What was copied for this savepoint before is not copied again. The sink prepares before it
        is copied, and commits if that is asked for. Raises OSError or NotCommitted.
        """
        self.claim(request)
        place = self.place(request)
        write(place / STAGE_FILE, self._stage.model_dump_json(by_alias=True, indent=1))
        state = self._described([self.checkpoint(shard) for shard in request.shards])
        total, unclean = 0, []
        for shard in request.shards:
            target = place / str(shard)
            if not is_saved(target, request.uid):
                self._save_shard(request, shard, target, state)
            if request.commit and self._sink:
                written = cuts.read(noted(target)["written"])
                self._sink.commit(request, written, self.checkpoint(shard))
            total += noted(target)["sizeBytes"]
            if noted(target).get("mayBeRepeated") or not read_checkpoint(target).clean:
                unclean.append(shard)
        if self._copies and request.repository and not request.commit:
            copies = {
                Share(request.savepoint, request.uid, self._stage.name, shard): place / str(shard)
                for shard in request.shards
            }
            self._copies.upload(copies, (place / STAGE_FILE).read_text())
        return Saved(
            uid=request.uid,
            shards=request.shards,
            size_bytes=total,
            committed=request.commit,
            unclean=unclean,
            state=state,
        )

    def claim(self, request: Saving) -> None:
        """Have the folder of a savepoint be of this very one. Raises OSError.

        A cut takes it from another of its number, which nobody keeps; so does nothing else: they
        may be the only copies of a job whose objects came back from a backup with other uids.
        """
        place = self.place(request)
        folder, held_by = place.parent, uid_of(place.parent)
        if held_by not in (None, request.uid) and request.cut is None:
            raise CopyDamaged(
                f"{folder} has the copies of another savepoint of this name (uid {held_by}): take"
                " one with another name, or remove that folder from the volume if nobody needs it"
            )
        place.mkdir(parents=True, exist_ok=True)
        if held_by != request.uid:
            write(folder / names.SAVEPOINT_FILE, json.dumps({"uid": request.uid}))

    def remove_earlier(self, request: Saving) -> None:
        """Remove earlier cuts of a consistent region that nobody keeps, once this one is saved."""
        remove_earlier(self.place(request).parent.parent, request)
        if self._copies and request.repository:
            self._copies.keep_up(request)

    def look_at(self, request: Saving) -> Saved:
        """Have what a cut has on the volume, whole. Raises CopyDamaged or OSError."""
        for shard in self._not_back(request):
            self._fetch(self._cut(request), self._stage.name, shard)
            _check_copy(self._cut(request) / self._stage.name / str(shard))
        return Saved(uid=request.uid, shards=request.shards)

    def roll_back(self, request: Saving, left_behind: LeftBehind = nullcontext) -> Saved:
        """Put what a cut has in the place of checkpoints that nobody runs. Raises OSError."""
        for shard in request.shards:  # that a pod has put back which died then
            self._end_replaced(shard, request, left_behind)
        for shard in self._not_back(request):
            source = self._cut(request) / self._stage.name / str(shard)
            if not source.exists():  # any more: it was looked at
                self._fetch(self._cut(request), self._stage.name, shard)
            shard_names.take_back(self.checkpoint(shard))
            query = shard_names.query_of(self.checkpoint(shard))
            if not self._is_back(shard, request):  # or that may be of the next pod, which outran us
                with left_behind(query):
                    self._put_back(source, shard, request)
                self._end_replaced(shard, request, left_behind)
        return Saved(uid=request.uid, shards=request.shards, committed=True)

    def place(self, request: Saving) -> Path:
        """Return the folder of our stage in a savepoint."""
        return self._savepoint(request.savepoint) / self._stage.name

    def _cut(self, request: Saving) -> Path:
        return self._savepoint(request.rolls_back_to or "")

    def _savepoint(self, name: str) -> Path:
        return self._root / names.savepoint_path(self._metadata.namespace, name)

    def _not_back(self, request: Saving) -> list[int]:
        """Return the shards that did not go back yet."""
        return [shard for shard in request.shards if not self._is_back(shard, request)]

    def _is_back(self, shard: int, request: Saving) -> bool:
        mark = self.checkpoint(shard) / ROLLED_BACK
        return mark.exists() and mark.read_text() == request.uid

    def _fetch(self, folder: Path, stage: str, shard: int) -> None:
        """Have a copy on the volume as it was made, if it is kept elsewhere, too."""
        if self._copies:
            place = folder / stage / str(shard)
            self._copies.fetch(folder.name, stage, shard, place, known_uid(folder))

    def _put_back(self, source: Path, shard: int, request: Saving) -> None:
        _check_copy(source)
        checkpoint = self.checkpoint(shard)
        old = shard_names.aside(checkpoint, request.uid)
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        remove_left(checkpoint)
        try:
            with suppress(_BackMeanwhile), Beside(checkpoint) as copy:
                link_tree(source, copy, frozenset({SHARD_FILE}))
                for entry in [*copy.glob("offsets/[0-9]*"), *copy.glob("sources/*/0")]:
                    edit(entry, lambda lines: [placed(line, request.ends) for line in lines])
                cuts.inherit(copy, cuts.read(noted(source).get("written", ())))
                topic_ids.forget(copy, request.ends)
                write(copy / ROLLED_BACK, request.uid)
                if self._is_back(shard, request):  # by the next pod, which outran us and runs it
                    raise _BackMeanwhile
                if checkpoint.exists():
                    checkpoint.rename(old)
                shard_names.name_anew(copy, old)
        except OSError:
            shard_names.take_back(checkpoint)
            raise

    def _end_replaced(self, shard: int, request: Saving, left_behind: LeftBehind) -> None:
        """Remove the folder that a shard had before it went back, once its query is ended."""
        old = shard_names.aside(self.checkpoint(shard), request.uid)
        query = shard_names.query_of(old)
        if self._is_back(shard, request) and old.exists():  # so nobody has taken it back
            with left_behind(query):
                pass
            shutil.rmtree(old, ignore_errors=True)

    def prepare(self, shard: int) -> None:
        """Make a shard's checkpoint from the job's savepoint, unless there is one already.

        A stage that the savepoint knows nothing of starts empty. Raises NotRestorable or OSError.
        """
        checkpoint = self.checkpoint(shard)
        if self._metadata.savepoint is None or checkpoint.exists():
            return
        remove_left(checkpoint)
        folder = self._root / self._metadata.savepoint
        with tempfile.TemporaryDirectory() as place:
            described = self._described_in(folder, Path(place))
            if not described.is_dir():
                raise NotRestorable(f"there is no savepoint at {folder}: was it deleted?")
            saved = saved_stages(described)
            old = match(saved, self._stage)
            if old is None and lacks_stages(described, saved):
                raise NotRestorable(f"not all of {folder} is there any more: was it deleted?")
            written = self._inherited(saved, described, shard)
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        if old is not None:
            self._make_checkpoint(folder, old, shard, written)
        if written and not checkpoint.exists():  # there is nothing else that it begins with
            with Beside(checkpoint) as fresh:
                cuts.inherit(fresh, written)

    def _described_in(self, folder: Path, place: Path) -> Path:
        """Return where a savepoint's stages are described: in it, or in a place for that."""
        if self._copies is None:
            return folder
        try:
            there = self._copies.describe(folder.name, SHARD_FILE, place, known_uid(folder))
        except (RepositoryUnavailable, CopyDamaged):
            if not any(folder.glob(f"*/{STAGE_FILE}")):  # shards may have been fetched into it
                raise
            return folder
        return place if there else folder

    def _make_checkpoint(
        self, folder: Path, old: SavedStage, shard: int, written: Sequence[cuts.Written]
    ) -> None:
        checkpoint = self.checkpoint(shard)
        sources = {
            origin: folder / old.name / str(origin)
            for origin in origins(old.shards, self._stage.shards, shard)
        }
        for origin, source in sources.items():
            self._fetch(folder, old.name, origin)
            if not (source / SHARD_FILE).is_file():
                raise NotRestorable(f"savepoint {folder.name} lacks shard {origin} of {old.name}")
            try:
                _check_copy(source)
            except CopyDamaged as error:  # there is no checkpoint yet that could be damaged
                why = str(error).removeprefix(f"{DAMAGED}: ")
                raise NotRestorable(f"savepoint {folder.name} is damaged: {why}") from error
        topics = renamed_topics(old, self._stage)
        if old.shards == self._stage.shards:
            with Beside(checkpoint) as copy:
                link_tree(sources[shard], copy, frozenset({SHARD_FILE, topic_ids.NOTE}))
                _make_own(copy, checkpoint, topics)
                brokers = noted(sources[shard]).get("brokers", {})
                topic_ids.inherit(copy, sources[shard], brokers, self._metadata.inputs)
                cuts.inherit(copy, written)
        else:
            split = Split(tuple(old.key), old.shards, self._stage.shards, shard)
            redistribute(sources, checkpoint, split, topics, self._stores, written)

    def _inherited(
        self, saved: Sequence[SavedStage], folder: Path, shard: int
    ) -> list[cuts.Written]:
        """Return what the sink had got of the shards whose first heir is this one.

        It is in the savepoint though the sink's stage may have nothing else in there.
        """
        sink = self._sink
        old = next((item for item in saved if sink and sink.name in item.operators), None)
        if old is None:
            return []
        ours = heirs(old.shards, self._stage.shards)
        files = [folder / old.name / str(origin) for origin, heir in ours.items() if heir == shard]
        return cuts.read([note for file in files for note in noted(file).get("written", ())])

    def _save_shard(
        self, request: Saving, shard: int, target: Path, state: Sequence[SavedState] | None
    ) -> None:
        checkpoint = self.checkpoint(shard)
        # A process that its node lost may still commit: the copy must not, without that batch.
        committed = max(entries(checkpoint / "commits"), default=-1)
        written = self._sink.written(checkpoint, shard, committed) if self._sink else []
        if self._sink:
            self._sink.prepare(request, written)
        document = {
            "savepoint": request.uid,
            "stages": request.stages,
            "brokers": topic_ids.brokers(self._metadata.inputs),
            "state": None if state is None else [item.to_wire() for item in state],
            "written": cuts.noted(written),
            "mayBeRepeated": modes.may_be_repeated(checkpoint),  # a copy has no ledgers to say so
        }
        _copy(checkpoint, target, committed, document)

    def _described(self, checkpoints: Sequence[Path]) -> list[SavedState] | None:
        """Return what the state consists of, by the first checkpoint that has some."""
        ran = (item for item in checkpoints if entries(item / "commits"))
        found = next((item for item in ran if (item / "state").is_dir()), None)
        if found is None:
            return []
        try:
            return self._stores.describe(found)
        except Exception as error:  # whatever Spark raises: the copies are as good without
            log.warning("%s can't be described: %s", found, error)
            return None


def _copy(checkpoint: Path, target: Path, committed: int, document: Mapping[str, object]) -> None:
    """Copy a checkpoint up to a batch; `document`: what to say of the copy beside its size."""
    if target.exists():  # of an earlier cut of this number
        shutil.rmtree(target)
    arrangement.finish(checkpoint)
    with Beside(target) as copy:
        if checkpoint.exists():
            link_tree(checkpoint, copy, frozenset({"offsets", "commits", LEDGERS, cuts.INHERITED}))
            link_entries(checkpoint / "commits", copy / "commits", committed)
            link_entries(checkpoint / "offsets", copy / "offsets", committed + 1)
        size = _size(copy)
        write(copy / SHARD_FILE, json.dumps({**document, "sizeBytes": size}))


def _check_copy(folder: Path) -> None:
    if not (folder / SHARD_FILE).is_file():
        raise CopyDamaged(f"{folder} is no copy of a shard: was it deleted?")
    try:
        with reading(folder / SHARD_FILE):
            expected = int(noted(folder)["sizeBytes"])
        check(folder)
    except CheckpointDamaged as error:
        raise CopyDamaged(str(error)) from error
    if (size := _size(folder)) != expected:
        raise CopyDamaged(f"{folder} has {size} bytes instead of {expected}: it lost files")


def _size(copy: Path) -> int:
    """Return how large the files of a copy are together, but for what is said of it."""

    def fail(error: OSError) -> None:  # what can't be listed now is not lost
        raise error

    files = (Path(at) / name for at, _, names in os.walk(copy, onerror=fail) for name in names)
    return sum(file.stat().st_size for file in files if file != copy / SHARD_FILE)


def _make_own(copy: Path, checkpoint: Path, topics: Mapping[str, str]) -> None:
    """Turn a copy of a savepoint's shard into a checkpoint of this job, to be at `checkpoint`."""
    for entry in copy.glob("offsets/[0-9]*"):
        edit(entry, lambda lines: rewritten(lines, topics))
    for entry in copy.glob("sources/*/0"):  # all that a shard has which never had a record
        edit(entry, lambda lines: [rewritten_line(line, topics) for line in lines])
    for entry in copy.glob(arrangement.NOTE):
        edit(entry, lambda lines: arrangement.rename_topics(lines, topics))
    for entry in copy.glob("state/*/_metadata/v2/[0-9]*"):
        edit(entry, lambda lines: relocated(lines, str(checkpoint)))
