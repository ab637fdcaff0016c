"""What a container is doing, in the API's terms."""

import time
from dataclasses import asdict, dataclass
from typing import Any

from streamgraft_common.timestamps import to_rfc3339


def now() -> str:
    """Return the time as the API writes it."""
    return to_rfc3339(time.time(), "seconds")


@dataclass(frozen=True)
class Waiting:
    """Not running yet, or not again yet."""

    reason: str
    message: str = ""

    def as_api(self) -> dict[str, Any]:
        """Return a ContainerState."""
        return {"waiting": {key: value for key, value in asdict(self).items() if value}}


@dataclass(frozen=True)
class Running:
    """The process runs."""

    started_at: str

    def as_api(self) -> dict[str, Any]:
        """Return a ContainerState."""
        return {"running": {"startedAt": self.started_at}}


@dataclass(frozen=True)
class Terminated:
    """The end of a container's process."""

    exit_code: int
    """128 + n after signal n, as shells and the kubelet have it."""
    reason: str
    started_at: str
    """Empty if it never started."""
    finished_at: str
    container_id: str
    """Empty if it never started."""
    message: str = ""

    def as_api(self) -> dict[str, Any]:
        """Return a ContainerState."""
        texts = {
            "reason": self.reason,
            "message": self.message,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "containerID": self.container_id,
        }
        state: dict[str, Any] = {key: text for key, text in texts.items() if text}
        state["exitCode"] = self.exit_code
        if self.exit_code > 128 and self.reason == "Error":
            state["signal"] = self.exit_code - 128
        return {"terminated": state}


State = Waiting | Running | Terminated
