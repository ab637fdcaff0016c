"""Processes that outlive their starter, told apart from any that reuse their pid (Linux /proc)."""

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

CLUSTER_VARIABLE = "STREAMGRAFT_CLUSTER_ID"
"""Environment variable that marks every process of a cluster, and so all of their children."""

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process: a pid is reused, a pid with its start time (ticks since this boot) is not."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the living process with this pid; None if there is none or it is a zombie."""
        ticks = _start_ticks(pid)
        return None if ticks is None else cls(pid, ticks, _boot())

    @classmethod
    def load(cls, file: Path) -> Self | None:
        """Return the recorded process, or None if there is no readable record."""
        try:
            return cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def save(self, file: Path) -> None:
        """Record the process."""
        file.write_text(json.dumps(asdict(self)))

    def alive(self) -> bool:
        """Return whether it still runs; reaps it if it was our child and has ended."""
        _reap(self.pid)
        return Process.of(self.pid) == self

    def command(self) -> str:
        """Return its command line, for people."""
        try:
            raw = (_PROC / str(self.pid) / "cmdline").read_bytes()
        except OSError:
            return ""
        return raw.replace(b"\0", b" ").decode(errors="replace").strip()

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self.alive():
            _kill(self.pid, number)


def spawn(
    command: Sequence[str], log: Path, environment: Mapping[str, str], record: Path
) -> Process:
    """Start a process in a session of its own, so that Ctrl-C in our terminal doesn't reach it.

    Output is appended to `log`. Raises FileNotFoundError if the program does not exist.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        command[0],
        list(command),
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    # A process that has ended already is a zombie until reaped: it gets a record that is not alive.
    process = Process.of(pid) or Process(pid, 0, _boot())
    process.save(record)
    return process


def stop(processes: Iterable[Process], grace_seconds: float) -> None:
    """End processes: SIGTERM to all, SIGKILL to those that are left after the grace period."""
    remaining = [process for process in processes if process.alive()]
    for process in remaining:
        process.send(signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while remaining and time.monotonic() < deadline:
        time.sleep(0.05)
        remaining = [process for process in remaining if process.alive()]
    for process in remaining:
        process.send(signal.SIGKILL)
    while any(process.alive() for process in remaining):
        time.sleep(0.02)


def members(cluster_id: str) -> list[Process]:
    """Return all processes of a cluster, without ourselves and our ancestors."""
    marker = f"{CLUSTER_VARIABLE}={cluster_id}".encode()
    own = _ancestors()
    found = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) in own:
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # not ours, or gone
            continue
        if marker in variables and (process := Process.of(int(folder.name))):
            found.append(process)
    return found


def start_ticks(stat: str) -> tuple[str, int, int]:
    """Return (state, parent's pid, start time in ticks) from the text of /proc/<pid>/stat.

    The command, in parentheses, may itself hold spaces and parentheses: proc(5).
    """
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])


def _start_ticks(pid: int) -> int | None:
    try:
        state, _, ticks = start_ticks((_PROC / str(pid) / "stat").read_text())
    except OSError:
        return None
    # Of a process that is killed the first thread may be a zombie while others still end: until
    # then its ports and locks are taken.
    return None if state in "ZX" and _threads(pid) <= 1 else ticks


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(_PROC / str(pid) / "task"))
    except OSError:
        return 0


def _ancestors() -> set[int]:
    pids, pid = set(), os.getpid()
    while pid > 0:
        pids.add(pid)
        try:
            _, pid, _ = start_ticks((_PROC / str(pid) / "stat").read_text())
        except OSError:
            break
    return pids


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
