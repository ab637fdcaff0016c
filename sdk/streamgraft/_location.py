"""Where in the user's code something was written."""

import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True, order=True)
class Location:
    """A line of a file. `str` gives the path relative to the working directory if it is below."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{_relative(self.file, Path.cwd())}:{self.line}"

    def relative_to(self, folder: Path) -> str:
        """Return `file:line` with the path relative to `folder`, if it is below."""
        return f"{_relative(self.file, folder)}:{self.line}"


def _relative(file: str, folder: Path) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


def caller() -> Location:
    """Return the innermost line on the stack that is not in this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno)


def innermost(trace: TracebackType | None, folder: Path) -> Location | None:
    """Return the innermost line of a traceback in a file below `folder`."""
    for entry in reversed(traceback.extract_tb(trace)):
        if entry.lineno and Path(entry.filename).is_relative_to(folder):
            return Location(entry.filename, entry.lineno)
    return None
