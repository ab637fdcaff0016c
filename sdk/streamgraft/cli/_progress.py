"""Progress of what takes seconds, on stderr: stdout is for results, which programs may read."""

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from streamgraft_local import Display


def display() -> "Display":
    """Return a display of steps, to use as a context manager."""
    from streamgraft_local import Display

    return Display(Console(stderr=True))
