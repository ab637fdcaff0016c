"""What Spark writes of the state of a query besides the state itself: operators and schemas.

It is the same for all queries of a stage but for the number of partitions and the places of files,
and Spark takes no state up without it.
"""

import re
from pathlib import Path

from streamgraft_pe_runtime.checkpoint_files import write

_STATE = "state"
_KINDS = ("_metadata", "_stateSchema")
_PARTITIONS = re.compile(r'"numPartitions":\d+')
_VERSIONED = "v2"
"""Folder of operator metadata that is written again when a schema changes, by batch."""


def copy(source: Path, target: Path, batch: int, partitions: int) -> None:
    """Copy it from one checkpoint to another one, which goes on behind `batch`."""
    for file in files(source):
        place = target / file.relative_to(source)
        if _VERSIONED in file.parts[-2:-1]:
            if file != _newest(file.parent):
                continue
            place = place.with_name(str(batch))
        data = file.read_bytes()
        if "_metadata" in file.parts and file.name != "schema":
            data = _moved(data.decode(), source, target, partitions).encode()
        if not place.exists() or place.read_bytes() != data:
            place.parent.mkdir(parents=True, exist_ok=True)
            (place.parent / f".{place.name}.crc").unlink(missing_ok=True)
            write(place, data)


def files(checkpoint: Path) -> list[Path]:
    """Return the files that it is in."""
    found = (file for kind in _KINDS for file in (checkpoint / _STATE).glob(f"**/{kind}/**/*"))
    return [file for file in found if file.is_file() and not file.name.startswith(".")]


def _newest(folder: Path) -> Path:
    numbered = [file for file in folder.iterdir() if file.name.isdigit()]
    return max(numbered, key=lambda file: int(file.name))


def _moved(text: str, source: Path, target: Path, partitions: int) -> str:
    text = text.replace(f"{source}/{_STATE}/", f"{target}/{_STATE}/")
    return _PARTITIONS.sub(f'"numPartitions":{partitions}', text)
