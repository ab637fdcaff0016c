"""Whether the checkpoints of a stage are gone, as of a volume that was made anew under its name.

Without a checkpoint a query reads everything again, with no state, and writes it once more. But
Kafka has the stage's ledgers (scala/exactly_once), and an entry begins with whose it is: so a stage
that has nothing on the volume, while a ledger has batches of it, is not new.
"""

import logging
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.ledgers import Entry, Ledgers, NotAllowed

log = logging.getLogger(__name__)

ROLLED_BACK = "rolled-back"
"""File in a shard's folder that was made from a cut, with the uid of the rollback. The cut may be
of before its first batch."""
_LEFT = ("offsets", "sources", ROLLED_BACK)


def life_of(stage: Path) -> str:
    """Return what tells a stage from one that had its name before: uid of the job, and folder."""
    return "/".join(stage.parts[-2:])


def has_left(checkpoint: Path) -> bool:
    """Return whether a checkpoint is one that was begun, or put back."""
    return any((checkpoint / name).exists() for name in _LEFT)


def check(stage: Path, written: Callable[[], str | None]) -> None:
    """Raise CheckpointDamaged if a stage has nothing, and yet has written.

    `stage`: its folder; `written` returns a ledger that says so. The volume is shared, so what
    another PE has begun is there as well.
    """
    if any(map(has_left, chain(stage.glob("*"), stage.glob("queries/*")))):
        return
    if ledger := written():
        why = (
            "it is gone, though it has written: to begin anew, cancel the job and submit it again"
            f" ({ledger})"
        )
        raise CheckpointDamaged(stage, why)


def written(ledgers: Ledgers, stage: Path) -> str | None:
    """Return a ledger that has batches of a stage, None if none has. Raises OSError."""
    try:
        return next((at for at, entry in ledgers.every() if _is_of(entry, life_of(stage))), None)
    except NotAllowed as error:
        log.info("ledgers can't be looked at: %s", error)  # the sink says so better
        return None


def _is_of(entry: Entry, life: str) -> bool:
    """Return whether an entry has batches of a stage, or positions of real-time mode."""
    return entry.incarnation.startswith(f"{life}/") and (entry.batch >= 0 or "=" in entry.plan)
