"""Whether the files of a checkpoint can be read, asked before a query starts from them.

Spark would fail, too, but mostly without naming the file.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgraft_pe_runtime.checkpoint_files import entries
from streamgraft_pe_runtime.spark_log import offsets_of

DAMAGED = "the checkpoint is damaged"
"""By this `failures` knows it."""
_VERSION = re.compile(r"v\d+")
_READ = 2
"""Entries of each log that Spark reads when a query goes on: the last, and the one before."""


class CheckpointDamaged(Exception):
    """A file of a checkpoint is missing or can't be read; the message names it."""

    def __init__(self, file: Path, why: object) -> None:
        super().__init__(f"{DAMAGED}: {file}: {why}")


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Raise CheckpointDamaged for a file that must be there and does not say what it should."""
    try:
        yield
    except FileNotFoundError as error:
        raise CheckpointDamaged(file, "it is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointDamaged(file, error) from error


def check(checkpoint: Path) -> None:
    """Raise CheckpointDamaged if a query can't go on from the newest entries of its logs."""
    identity = checkpoint / "metadata"
    if identity.exists():
        with reading(identity):
            json.loads(identity.read_text())
    for log in ("offsets", "commits"):
        for number in entries(checkpoint / log)[-_READ:]:
            file = checkpoint / log / str(number)
            with reading(file):
                _check_entry(file.read_text())


def _check_entry(text: str) -> None:
    """Raise ValueError for what is no entry of a log of Spark's."""
    version, *lines = text.splitlines() or [""]
    if not _VERSION.fullmatch(version):
        raise ValueError("it does not begin with the version of its format")
    if not lines:
        raise ValueError("it ends behind its first line")
    for line in lines:
        offsets_of(line)
