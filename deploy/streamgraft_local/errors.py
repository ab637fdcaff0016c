"""What can go wrong, with all that a user needs to go on."""

from pathlib import Path


class LocalError(Exception):
    """The embedded environment can't do what was asked; the message says why and what to do."""


class ComponentError(LocalError):
    """A component ended or did not become ready; carries the tail of its log."""

    def __init__(self, name: str, reason: str, log: Path) -> None:
        super().__init__(f"{name}: {reason}\nlog: {log}\n{tail(log)}")
        self.name = name
        self.log = log


class ToolError(LocalError):
    """A tool can't be found, built or fetched."""


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, empty if there is none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 16384))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
