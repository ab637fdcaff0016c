"""What long work tells while it runs, and a display of it in the terminal."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Phase(StrEnum):
    """Where a step stands."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Step:
    """One thing that is being built, fetched or started."""

    name: str
    phase: Phase
    note: str = ""
    """What it does and how long that usually takes, or why it failed."""


Report = Callable[[Step], None]
"""Receives every change, from any thread."""


def silent(step: Step) -> None:
    """Report nothing."""


@contextmanager
def reported(report: Report, name: str, note: str = "") -> Iterator[None]:
    """Report a step: that it begins, and how it ends."""
    report(Step(name, Phase.STARTED, note))
    try:
        yield
    except Exception as error:
        report(Step(name, Phase.FAILED, str(error).partition("\n")[0]))
        raise
    report(Step(name, Phase.DONE))


class Display:
    """Live lines in the terminal, one a step; use as a context manager and pass `report` on.

    Where there is no terminal, a line is printed when a step begins and when it ends. Without steps
    nothing is.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._began = time.monotonic()
        self._progress = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=self._console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._tasks:
            self._progress.stop()

    def report(self, step: Step) -> None:
        """Show a change."""
        if not self._console.is_terminal:
            words = f"{step.name}: {step.phase}{step.note and f', {step.note}'}"
            text = f"{time.monotonic() - self._began:6.1f} s  {words}"
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
            return
        with self._lock:
            self._progress.start()
            if step.name not in self._tasks:
                self._tasks[step.name] = self._progress.add_task(step.name, total=1, note="")
        task = self._tasks[step.name]
        if step.phase is Phase.STARTED:
            self._progress.update(task, note=step.note)
        elif step.phase is Phase.DONE:
            self._progress.update(task, completed=1, note=step.note)
        else:
            self._progress.update(task, description=f"[red]{step.name}", note=step.note)
            self._progress.stop_task(task)
