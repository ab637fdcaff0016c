"""Files of a checkpoint are damaged, or of a newer version: its shard says so and what to do.

Nothing is overwritten, the other shards go on, and so does this one when the file is put back.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.long]


def newest(folder: Path, pattern: str) -> Path:
    """Return the file with the highest number."""
    files = folder.glob(pattern)
    numbers = {int(file.name.partition(".")[0]): file for file in files if file.name[0].isdigit()}
    return numbers[max(numbers)]


class Damage:
    """A file with another content; its checksum is gone, as Spark finds no fault in it then."""

    def __init__(self, file: Path, content: Callable[[bytes], bytes]) -> None:
        self.file = file
        self._checksum = file.with_name(f".{file.name}.crc")
        self._before = file.read_bytes(), self._checksum.exists() and self._checksum.read_bytes()
        self._checksum.unlink(missing_ok=True)
        self.content = content(self._before[0])
        file.write_bytes(self.content)

    def put_back(self) -> None:
        """Undo it; nothing has touched the file meanwhile."""
        assert self.file.read_bytes() == self.content
        content, checksum = self._before
        self.file.write_bytes(content)
        if checksum:
            self._checksum.write_bytes(checksum)


@pytest.mark.parametrize("stage", ["counted"], indirect=True)
async def test_damage_is_told_and_heals(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """State, a plan of a batch, and the format of a plan."""
    pe, other = await stage.start(0, [0]), await stage.start(1, [1])
    await pe.running(0)
    await other.running(1)
    source = load(100)
    output.until(lambda values: sum(map(len, values.values())) > 100)
    assert await pe.terminate() == 0
    folder = stage.folder / "checkpoints" / stage.metadata().checkpoint_path
    state = newest(folder / "0" / "state", "0/0/*.delta")
    (query,) = [item.parent for item in folder.glob("queries/*/shards.json") if _of(item, 0)]
    planned = newest(query / "offsets", "*")
    cases = (
        (state, lambda content: content[: len(content) // 2], "CheckpointDamaged"),
        (planned, lambda content: b"\xff rubbish", "CheckpointDamaged"),
        (planned, lambda content: content.replace(b"v1", b"v99", 1), "CheckpointTooNew"),
    )
    again: Any = None
    epoch = 1
    for file, content, reason in cases:
        where = folder if file == state else file  # Spark does not say which file of the state
        damage = Damage(file, content)
        epoch += 1
        if again is None:
            again = await stage.start(2, [0])
        else:
            await again.assign([0], epoch)  # who waits to try again does it at once
        failed = await again.until(
            lambda status, where=where, reason=reason: (
                "0" in status.shards
                and status.shards["0"].state == "Failed"
                and status.shards["0"].reason == reason
                and status.shards["0"].message.startswith(f"{where}: ")
            ),
            240,
        )
        assert "nothing is overwritten" in failed.shards["0"].message
        seen = sum(len(values) for key, values in output.values.items() if int(key[1:]) % 2)
        output.until(
            lambda values, seen=seen: (
                sum(len(counts) for key, counts in values.items() if int(key[1:]) % 2) > seen
            )
        )
        damage.put_back()
    await again.assign([0], epoch + 1)
    await again.until(lambda status: not status.failure)
    sent = source.stop()
    output.until(lambda values: {key: counts[-1] for key, counts in values.items()} == sent, 60)
    output.read(1.0)
    assert {key: counts[-1] for key, counts in output.values.items()} == sent
    assert all(counts == sorted(set(counts)) for counts in output.values.values())


def _of(described: Path, shard: int) -> bool:
    return f'"shards": [{shard}]' in described.read_text()
