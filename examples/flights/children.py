"""Child processes of the demo: started, followed line by line, and always ended."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from examples.flights.clock import Clock
from examples.flights.settings import ROOT, SOURCE_TOPIC

GRACE_SECONDS = 10.0


class ChildFailed(Exception):
    """A child process ended with an error; the message has the end of what it wrote."""


@asynccontextmanager
async def child(
    command: Sequence[str],
    log: Path | None,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command while the context is open; its standard error goes to `log`.

    With a log, standard output is a pipe; without one, both streams are the terminal's. It has a
    session of its own: Ctrl-C reaches only us, and when we leave, everything in it is ended.
    """
    output = log.open("ab") if log else None
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if log else None,
            stderr=output,
            env={**os.environ, **(environment or {})},
            cwd=ROOT,
            start_new_session=True,
        )
    finally:
        if output:
            output.close()
    try:
        yield process
    finally:
        await _end(process)


async def succeed(process: asyncio.subprocess.Process, what: str, log: Path | None) -> None:
    """Wait until the process has ended. Raises ChildFailed unless it ended well."""
    code = await process.wait()
    if code:
        raise ChildFailed(f"{what} ended with exit code {code}\n{_tail(log)}".rstrip())


@asynccontextmanager
async def service(
    rate: float, log: Path, environment: Mapping[str, str] | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    """Run the enrichment service, of so many flights/s per connection; yield its URL.

    Raises ChildFailed if it does not start.
    """
    module = (sys.executable, "-m", "examples.flights.service")
    command = (*module, "--rate", f"{rate}", "--host", host)
    async with child(command, log, environment) as process:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        if not url:
            await succeed(process, "the enrichment service", log)
            raise ChildFailed("the enrichment service ended at once")
        yield url


def replay_command(clock: Clock, bootstrap_servers: str) -> tuple[str, ...]:
    """Return the command that sends the flights by a clock."""
    return (
        *(sys.executable, "-m", "examples.flights.replay"),
        *("--bootstrap-servers", bootstrap_servers, "--topic", SOURCE_TOPIC),
        *("--days", str(clock.days), "--cycles", str(clock.cycles)),
        *("--cycle-seconds", str(clock.cycle_seconds)),
    )


def _tail(log: Path | None) -> str:
    return log.read_text(errors="replace")[-2000:] if log else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    _signal(process, signal.SIGTERM)
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        pass
    _signal(process, signal.SIGKILL)  # whatever it has left behind in its session
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
