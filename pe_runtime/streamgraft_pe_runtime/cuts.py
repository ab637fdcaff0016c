"""What the sink function of a stage is told of cuts: what of its batches is in them.

A shard's batches are told apart by the incarnation of its checkpoint and their numbers. A copy of a
checkpoint notes which of them are in it. What comes out of a copy has an incarnation of its own,
and keeps that note until a cut of its own was committed: so what was written before the copy and
not made final yet is made final then, and what was written behind it never.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.batches import Cut
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import Saving
from streamgraft_pe_runtime.checkpoint_files import incarnation, write
from streamgraft_pe_runtime.protocol import NotCommitted

CutFunctions = Mapping[str, Callable[[Cut], None]]
"""`prepare` and `commit`."""

INHERITED = "inherited.json"
"""File of a checkpoint that came out of a copy. A copy never has it: it has a note of its own."""


@dataclass(frozen=True)
class Written:
    """Batches of a sink: all of one writer and incarnation up to `last_batch`."""

    writer: str
    shard: int
    incarnation: str
    last_batch: int


class CutSink:
    """The sink of a stage that takes part in cuts."""

    def __init__(self, name: str, metadata: PeMetadata, functions: CutFunctions) -> None:
        self.name = name
        self._metadata = metadata
        self._functions = functions

    def written(self, checkpoint: Path, shard: int, last_batch: int) -> list[Written]:
        """Return what the sink has got of a shard up to a batch, the oldest first."""
        pe = self._metadata
        writer = names.transactional_id(pe.namespace, pe.job, pe.stage_name, shard, self.name)
        return [
            *_inherited(checkpoint),
            Written(writer, shard, incarnation(checkpoint), last_batch),
        ]

    def prepare(self, request: Saving, written: Sequence[Written]) -> None:
        """Ask whether all that is written can be made final. Raises NotCommitted."""
        self._call("prepare", request, written)

    def commit(self, request: Saving, written: Sequence[Written], checkpoint: Path) -> None:
        """Have all that is written made final; it may have been before. Raises NotCommitted."""
        self._call("commit", request, written)
        if _inherited(checkpoint) == list(written[:-1]):  # else it came out of another copy since
            (checkpoint / INHERITED).unlink(missing_ok=True)

    def _call(self, what: str, request: Saving, written: Sequence[Written]) -> None:
        if (function := self._functions.get(what)) is None:
            return
        for item in written:
            try:
                function(Cut(request.cut or 0, request.savepoint, **asdict(item)))
            except Exception as error:  # whatever the user's function raises: it is called again
                raise NotCommitted(
                    f"{self.name} can't {what} {request.savepoint}, shard {item.shard}:"
                    f" {type(error).__name__}: {error}"
                ) from error


def cut_sink(
    metadata: PeMetadata, adl: Adl, functions: Mapping[str, CutFunctions]
) -> CutSink | None:
    """Return the sink of a PE's stage, if it takes part in cuts."""
    ours = (item for item in adl.operators if item.commits and item.name in metadata.operators)
    return next((CutSink(item.name, metadata, functions[item.name]) for item in ours), None)


def noted(written: Sequence[Written]) -> list[dict[str, Any]]:
    """Return what a copy notes of them."""
    return [asdict(item) for item in written]


def read(notes: Sequence[Mapping[str, Any]]) -> list[Written]:
    """Return what a copy has noted."""
    return [Written(**item) for item in notes]


def inherit(checkpoint: Path, written: Sequence[Written]) -> None:
    """Note, in a checkpoint that is made from copies, what of them may not be final yet."""
    if written:
        write(checkpoint / INHERITED, json.dumps(noted(written)))


def _inherited(checkpoint: Path) -> list[Written]:
    with suppress(FileNotFoundError):
        return read(json.loads((checkpoint / INHERITED).read_text()))
    return []
