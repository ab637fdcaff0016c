"""Reading the log of a container: its tail, and what is still being written."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

_CHUNK = 65536
_POLL_SECONDS = 0.25
"""While somebody follows a log; reading at the end of a file is cheap."""


def log_path(container: Path, *, previous: bool) -> Path | None:
    """Return the newest log of a container's folder, or the one before; None if there is none."""
    numbers = sorted(int(path.stem) for path in container.glob("*.log") if path.stem.isdigit())
    index = -2 if previous else -1
    return container / f"{numbers[index]}.log" if len(numbers) >= -index else None


def tail_offset(path: Path, lines: int) -> int:
    """Return where the last `lines` lines of a file begin."""
    with open(path, "rb") as file:
        end = position = file.seek(0, 2)
        found = 0
        while position > 0:
            start = max(0, position - _CHUNK)
            file.seek(start)
            block = file.read(position - start)
            for index in range(len(block) - 1, -1, -1):
                # The newline at the very end closes the last line, it begins none.
                if block[index] == 0x0A and start + index != end - 1:
                    found += 1
                    if found == lines:
                        return start + index + 1
            position = start
    return end if lines == 0 else 0


async def read(path: Path, offset: int, follow: Callable[[], bool] | None) -> AsyncIterator[bytes]:
    """Yield a file's content from `offset` on; while `follow()` holds, also what is added."""
    while True:
        # Asked before reading: what was written before the end is read in any case.
        more = follow is not None and follow()
        while block := _block(path, offset):
            offset += len(block)
            yield block
        if not more:
            return
        await asyncio.sleep(_POLL_SECONDS)


def _block(path: Path, offset: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(_CHUNK)
