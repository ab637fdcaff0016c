"""What containers and the machine use, from /proc: CPU time and memory."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgraft_local.node.process import marked

_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_TIMES = slice(11, 15)
"""utime, stime, cutime, cstime in the fields of /proc/PID/stat from its state on. With the time of
children that were waited for, the sum over a container's processes does not fall when one ends."""


@dataclass(frozen=True)
class Reading:
    """What was used up to one moment."""

    run: str
    """Which run of the container it is of: another one begins at zero."""
    at: float
    """Unix time."""
    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Usage:
    """What was used within a window that ends at a moment."""

    at: float
    """Unix time."""
    window_seconds: float
    cores: float
    memory_bytes: int

    def as_api(self) -> dict[str, str]:
        """Return a ResourceList, in the units of metrics-server."""
        return {"cpu": f"{round(self.cores * 1e9)}n", "memory": f"{self.memory_bytes // 1024}Ki"}


def usage(before: Reading | None, now: Reading) -> Usage | None:
    """Return what was used between two readings; None unless both are of one run."""
    if before is None or before.run != now.run or now.at <= before.at:
        return None
    window = now.at - before.at
    cores = max(now.cpu_seconds - before.cpu_seconds, 0.0) / window
    return Usage(now.at, window, cores, now.memory_bytes)


def read_containers(folder: Path, runs: Mapping[str, str]) -> dict[str, Reading]:
    """Return what containers use; `folder`: that of all of them, `runs`: run by marker."""
    pids = defaultdict(list)
    for pid, found in marked(folder).items():
        pids[found].append(pid)
    at = time.time()
    readings = {}
    for found, run in runs.items():
        processes = pids.get(found, [])
        memory = sum(map(_memory_bytes, processes))
        if memory:  # else they have ended
            readings[found] = Reading(run, at, sum(map(_cpu_seconds, processes)), memory)
    return readings


def read_machine() -> Reading:
    """Return what all of the machine uses, the node's other programs included."""
    at = time.time()
    first = Path("/proc/stat").read_text().partition("\n")[0].split()
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, first[1:9])
    busy = user + nice + system + irq + softirq + steal
    sizes = _kibibytes(Path("/proc/meminfo").read_text().splitlines())
    return Reading("", at, busy / _TICKS, 1024 * (sizes["MemTotal"] - sizes["MemAvailable"]))


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[_CPU_TIMES])) / _TICKS


def _memory_bytes(pid: int) -> int:
    """Return a process's part of the memory; what it shares counts in parts that add up."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 1024 * _kibibytes(lines).get("Pss", 0)


def _kibibytes(lines: Iterable[str]) -> dict[str, int]:
    return {name: int(size.split()[0]) for name, _, size in (line.partition(":") for line in lines)}
