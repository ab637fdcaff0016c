"""What the node remembers of a container on disk, so that its successor can take over."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from streamgraft_local.node.files import write_atomically
from streamgraft_local.node.process import ProcessId
from streamgraft_local.node.states import Terminated

_FILE = "state.json"


@dataclass(frozen=True)
class Record:
    """The newest run of a container."""

    restart_count: int = 0
    started_at: str = ""
    process: ProcessId | None = None
    """While it runs."""
    ended: Terminated | None = None
    """Once it has ended."""
    last: Terminated | None = None
    """End of the run before."""

    def save(self, folder: Path) -> None:
        """Write it into the container's folder."""
        write_atomically(folder / _FILE, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read it; None if the container was never started."""
        path = folder / _FILE
        if not path.exists():
            return None
        document = json.loads(path.read_text())
        process, ended, last = (document.pop(key) for key in ("process", "ended", "last"))
        return cls(
            **document,
            process=ProcessId(**process) if process else None,
            ended=Terminated(**ended) if ended else None,
            last=Terminated(**last) if last else None,
        )
