"""Whether CPU is short: the kernel's pressure stall information."""

from pathlib import Path

_FILES = (Path("/sys/fs/cgroup/cpu.pressure"), Path("/proc/pressure/cpu"))
"""Of the container, if it has its own; of the whole machine."""


def cpu_pressure() -> float:
    """Return the share of the last ten seconds in which something that could run waited for CPU.

    0 where the kernel does not say it.
    """
    for file in _FILES:
        try:
            return parse(file.read_text())
        except (OSError, ValueError):
            continue
    return 0.0


def parse(text: str) -> float:
    """Return the share that a pressure file tells (`some avg10=12.34 …`). Raises ValueError."""
    for line in text.splitlines():
        kind, *values = line.split()
        found = dict(value.split("=") for value in values)
        if kind == "some":
            return float(found["avg10"]) / 100
    raise ValueError("no line 'some'")
