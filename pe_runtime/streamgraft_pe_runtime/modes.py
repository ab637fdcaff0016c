"""Whether a checkpoint may go on in a mode: a batch that was cut off ends in its own.

The log of a micro-batch is written when it begins, that of a batch in real-time mode when it ends.
So to each mode the other's checkpoint looks as if nothing were under way, and it would write again
what is written.
"""

import time
from pathlib import Path

from streamgraft_pe_runtime.checkpoint_files import FORMER, LEDGERS, LOOSE, REAL_TIME, TAKEN_OVER
from streamgraft_pe_runtime.query_logs import is_cut_off
from streamgraft_pe_runtime.targets import MAIN


class OtherMode(Exception):
    """A batch was cut off in the other mode; the message says what to do."""

    def __init__(self) -> None:
        super().__init__(
            "the last run was cut off within a batch, in another mode than this: set real-time"
            " mode as it was, let the query run until it can be stopped, and then change it"
        )


def may_be_repeated(checkpoint: Path) -> bool:
    """Return whether real-time mode has written what no batch of the checkpoint has."""
    return (checkpoint / LEDGERS / REAL_TIME).exists()


def check(checkpoint: Path, *, real_time: bool) -> None:
    """Raise OtherMode if a query that writes exactly once may not begin in this mode."""
    begun = may_be_repeated(checkpoint)
    if begun != real_time and (begun or (is_cut_off(checkpoint) and _is_written(checkpoint))):
        raise OtherMode


def _is_written(checkpoint: Path) -> bool:
    """Return whether a ledger was begun with a checkpoint: a savepoint's copies come without."""
    marks = (REAL_TIME, LOOSE, TAKEN_OVER)
    files = (checkpoint / LEDGERS).rglob("*")
    return any(file.is_file() and file.name not in marks for file in files)


def forget(checkpoint: Path) -> None:
    """Let a checkpoint go on in any mode: its query has ended between two batches."""
    (checkpoint / LEDGERS / REAL_TIME).unlink(missing_ok=True)


def give_up_ledger(checkpoint: Path) -> None:
    """Let whoever writes exactly once begin a ledger of its own: a query that goes on with the
    checkpoint in real-time mode, at least once, keeps none, and ends what was cut off."""
    for file in (MAIN, f"{FORMER}/{MAIN}", REAL_TIME):
        (checkpoint / LEDGERS / file).unlink(missing_ok=True)


def comes_again(checkpoint: Path) -> bool:
    """Return whether what a batch that was cut off has written at least once is to be written again
    by the next one that runs in real-time mode."""
    return (checkpoint / LEDGERS / LOOSE).exists()


def loose_since(checkpoint: Path) -> int:
    """Return since when, in seconds, what is written at least once may have been written before.

    That is since the first run began that did not end between two batches, or since now; the sink
    notes it when it writes. Readers look no further back for repeats.
    """
    try:
        return int((checkpoint / LEDGERS / LOOSE).read_text())
    except FileNotFoundError:
        return int(time.time())
    except ValueError:  # left so by a full disk, or a power failure
        return 0


def end_loose(checkpoint: Path) -> None:
    """Note that nothing comes again: a query ended between two batches, or another writes anew."""
    (checkpoint / LEDGERS / LOOSE).unlink(missing_ok=True)
