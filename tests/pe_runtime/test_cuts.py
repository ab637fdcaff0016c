"""What the sink function of a stage is told of cuts, and what is in them."""

import errno
import io
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.pe_runtime.test_savepoints import ADL, Undescribed, checkpoint

from streamgraft_common import names
from streamgraft_common.adl import Operator
from streamgraft_common.batches import Cut
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import Saving
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, incarnation
from streamgraft_pe_runtime.cuts import cut_sink
from streamgraft_pe_runtime.protocol import NotCommitted
from streamgraft_pe_runtime.savepoints import Storage

SINK = Operator(name="files", kind="sink", inputs=["raw"], commits=True)


class Sink:
    """Remembers what it is called for; refuses what it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Cut]] = []
        self.refuses = ""

    def at(self, moment: str, cut: Cut) -> None:
        if moment == self.refuses:
            raise ValueError("the service is away")
        self.calls.append((moment, cut))

    def taken(self) -> list[tuple[str, Cut]]:
        """Return the calls since the last look."""
        found, self.calls = self.calls, []
        return found


@pytest.fixture
def sink() -> Sink:
    return Sink()


def storage(
    root: Path, sink: Sink, job: str = "job", savepoint: str | None = None, shards: int = 1
) -> Storage:
    metadata = PeMetadata(
        namespace="ns",
        job=job,
        pe_id=0,
        stage_name="files",
        region=None,
        channel=None,
        shard_count=shards,
        operators=["files"],
        inputs=[],
        outputs=[],
        checkpoint_path=f"ns/{job}-uid/files",
        savepoint=names.savepoint_path("ns", savepoint) if savepoint else None,
        trigger_seconds=1,
        bundle_digest="digest",
    )
    adl = ADL.model_copy(update={"operators": [SINK]})
    functions = {
        "files": {
            "prepare": lambda cut: sink.at("prepare", cut),
            "commit": lambda cut: sink.at("commit", cut),
        }
    }
    return Storage(root, metadata, adl, Undescribed(), cut_sink(metadata, adl, functions))


def saving(number: int, *, commit: bool = False) -> Saving:
    return Saving(savepoint=f"c{number}", uid=f"u{number}", shards=[0], cut=number, commit=commit)


def cut_of(
    kept: Storage, number: int, last_batch: int, *, job: str = "job", savepoint: str | None = None
) -> Cut:
    known = incarnation(kept.checkpoint(0))
    name = savepoint or f"c{number}"
    return Cut(number, name, f"ns.{job}.files.0.files", 0, known, last_batch)


def test_a_cut_is_prepared_once_and_committed_with_what_was_in_it(
    tmp_path: Path, sink: Sink
) -> None:
    """A commit may come when the shard runs again: what it has written meanwhile is not in it."""
    kept = storage(tmp_path, sink)
    checkpoint(kept.checkpoint(0), "t", batches=3, clean=False)
    cut = cut_of(kept, 4, 1)
    assert not kept.save(saving(4)).committed
    assert sink.taken() == [("prepare", cut)]
    (kept.checkpoint(0) / "commits" / "2").write_text("v1\n{}")
    assert kept.save(saving(4, commit=True)).committed
    assert sink.taken() == [("commit", cut)]


def test_an_incarnation_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, or the pod dies: checkpoints would all have the same, for good."""
    opened = io.open

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(file: Any, mode: str = "r", *rest: Any) -> Any:
        if mode == "r":
            return opened(file, mode, *rest)
        opened(file, mode, *rest).close()
        return Full()

    with monkeypatch.context() as patched:
        patched.setattr(io, "open", full)
        with pytest.raises(OSError, match="No space left"):
            incarnation(tmp_path / "0")
    assert list((tmp_path / "0" / LEDGERS).iterdir()) == []
    known = incarnation(tmp_path / "0")
    assert uuid.UUID(known)
    assert incarnation(tmp_path / "0") == known


def test_an_incarnation_that_is_empty_is_none(tmp_path: Path) -> None:
    """Former releases have left such ones."""
    (tmp_path / LEDGERS).mkdir()
    (tmp_path / LEDGERS / "FUNCTION").touch()
    known = incarnation(tmp_path)
    assert uuid.UUID(known)
    assert incarnation(tmp_path) == known


@pytest.mark.parametrize("moment", ["prepare", "commit"])
def test_a_sink_that_refuses_is_named_and_asked_again(
    tmp_path: Path, sink: Sink, moment: str
) -> None:
    kept = storage(tmp_path, sink)
    checkpoint(kept.checkpoint(0), "t", batches=1)
    commit = moment == "commit"
    if commit:
        kept.save(saving(1))
    sink.refuses = moment
    with pytest.raises(NotCommitted, match=rf"files can't {moment} c1, shard 0: ValueError: the s"):
        kept.save(saving(1, commit=commit))
    sink.refuses = ""
    kept.save(saving(1, commit=commit))
    assert sink.taken()[-1] == (moment, cut_of(kept, 1, 0))


def test_what_a_copy_has_is_made_final_by_the_first_cut_of_what_comes_out_of_it(
    tmp_path: Path, sink: Sink
) -> None:
    """A savepoint of the job commits nothing: the job goes on, and its next cut does it."""
    old = storage(tmp_path, sink)
    checkpoint(old.checkpoint(0), "t", batches=2)
    old.save(Saving(savepoint="s", uid="u", shards=[0]))
    assert sink.taken() == [("prepare", cut_of(old, 0, 1, savepoint="s"))]

    new = storage(tmp_path, sink, job="new", savepoint="s")
    new.prepare(0)
    before = cut_of(old, 1, 1)
    own = cut_of(new, 1, -1, job="new")  # the stage itself has nothing in the savepoint
    assert own.incarnation != before.incarnation
    new.save(saving(1))
    new.save(saving(1, commit=True))
    calls = [(what, cut) for what in ("prepare", "commit") for cut in (before, own)]
    assert sink.taken() == calls

    new.save(saving(2))
    assert [cut for _, cut in sink.taken()] == [cut_of(new, 2, -1, job="new")]


def test_what_is_not_final_yet_is_handed_on(tmp_path: Path, sink: Sink) -> None:
    old = storage(tmp_path, sink)
    checkpoint(old.checkpoint(0), "t", batches=2)
    old.save(Saving(savepoint="s", uid="u", shards=[0]))
    second = storage(tmp_path, sink, job="second", savepoint="s")
    second.prepare(0)
    second.save(Saving(savepoint="s2", uid="u2", shards=[0]))
    third = storage(tmp_path, sink, job="third", savepoint="s2")
    third.prepare(0)
    sink.taken()
    third.save(saving(1))
    writers = [cut.writer.split(".")[1] for _, cut in sink.taken()]
    assert writers == ["job", "second", "third"]
