"""Processes of containers: start, adopt after the node itself restarted, wait, signal.

Waiting uses a pidfd on the event loop: no thread, no polling, and it works for adopted processes,
which are not our children (their exit code stays unknown). A process is known by pid and start
time, since pids are used again.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

MARKER = "STREAMGRAFT_CONTAINER"
"""Environment variable that names the container of a process: its folder, ending with a slash."""
_KILL_SECONDS = 0.005
"""What a killed process may take to go."""


@dataclass(frozen=True)
class ProcessId:
    """A process, unmistakably."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the identity of a live process, or None."""
        try:
            # The command name may contain anything; fields count from its closing bracket.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))


class Process:
    """One running process."""

    def __init__(self, identity: ProcessId, child: subprocess.Popen[bytes] | None) -> None:
        self.identity = identity
        self._child = child
        self._pidfd = os.pidfd_open(identity.pid)

    @classmethod
    def start(
        cls, command: Sequence[str], variables: Mapping[str, str], folder: Path, log: Path | None
    ) -> Self:
        """Start a command in a session of its own; output is appended to `log`. Raises OSError."""
        with open(log or os.devnull, "ab") as output:
            child = subprocess.Popen(
                command,
                env=variables,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # The child is not reaped yet, so it is there even if it has ended already.
        identity = ProcessId.of(child.pid) or ProcessId(child.pid, 0)
        return cls(identity, child)

    @classmethod
    def adopt(cls, identity: ProcessId) -> Self | None:
        """Take over a process that another node process started; None if it has ended."""
        if ProcessId.of(identity.pid) != identity:
            return None
        try:
            return cls(identity, None)
        except ProcessLookupError:
            return None

    async def wait(self) -> int | None:
        """Return the exit code (128 + n after signal n) once ended, None if it can't be known."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        loop.add_reader(self._pidfd, _set_once, ended)
        try:
            await ended
        finally:
            loop.remove_reader(self._pidfd)
        if self._child is None:
            return None
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this process only, as container runtimes do."""
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Give the handle back; call it once wait() has returned."""
        os.close(self._pidfd)


def _set_once(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def marker(folder: Path) -> str:
    """Return the marker of a container's folder; a prefix of it for a pod's or a node's folder.

    The slash keeps container `a` apart from container `ab`.
    """
    return f"{folder}/"


def marked(folder: Path) -> dict[int, str]:
    """Return the processes that belong to a container, a pod or a node: pid → marker."""
    wanted = f"{MARKER}={marker(folder)}".encode()
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            block = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        for line in block.split(b"\0"):
            if line.startswith(wanted):
                found[int(entry.name)] = line.partition(b"=")[2].decode()
    return found


def kill_marked(folder: Path) -> None:
    """Kill everything that belongs to a container, a pod or a node, by its folder.

    What a container runtime gets from a PID namespace: no descendant outlives the container, even
    in a session of its own. Repeats until nothing is left, since a process may fork meanwhile.
    """
    while pids := [pid for pid in marked(folder) if ProcessId.of(pid)]:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_KILL_SECONDS)
