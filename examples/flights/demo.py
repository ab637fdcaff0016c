"""The demo: `python -m examples.flights.demo [--days N]`, or `make demo`.

Brings everything up, replays the flights, lets the real HPA scale the stream, compares the result
with a batch computation, reports, and takes everything down. Exit code 0 only if every promise was
kept and nothing is left running. Ctrl-C and SIGTERM take everything down at any time.
"""

import argparse
import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from examples.flights import display
from examples.flights.children import ChildFailed
from examples.flights.report import Report
from examples.flights.run import Run
from examples.flights.settings import CYCLE_SECONDS, DAYS, DAYS_OF_THE_YEAR, Plan, Settings
from examples.flights.verdict import Check, Outcome, checks, nothing_left
from streamgraft_common.kube import ApiError, Unreachable
from streamgraft_local import Cluster, LocalError

INTERRUPTED = 130
FAILED = 1
_EXPECTED = (ChildFailed, LocalError, ApiError, Unreachable, TimeoutError, OSError)


async def demo(settings: Settings, console: Console) -> int:
    """Run the demo; return its exit code."""
    started = time.monotonic()
    settings.report.mkdir(parents=True, exist_ok=True)
    plan = await asyncio.to_thread(Plan.of, settings)
    console.print(plan.describe(), highlight=False)
    cluster = Cluster(settings.cluster)
    outcome: Outcome | None = None
    try:
        await asyncio.to_thread(cluster.down, delete=True)  # what a killed run may have left
        outcome = await Run(plan, cluster, console).outcome()
    except* _EXPECTED as group:
        console.print(f"[bold red]The demo failed:[/] {_first(group)}", highlight=False)
    finally:
        console.print("Taking everything down")
        left = await asyncio.to_thread(_take_down, cluster, settings.report)
    if outcome is None:
        return FAILED
    report = Report(plan, outcome, [*checks(outcome), left])
    await asyncio.to_thread(report.write, settings.report)
    display.show(console, report)
    display.show_checks(console, report)
    console.print(f"{time.monotonic() - started:.0f} s in all; report: {settings.report}/report.md")
    return 0 if report.kept else FAILED


def _take_down(cluster: Cluster, report: Path) -> Check:
    cluster.down()
    left = nothing_left([process.command() for process in cluster.leftovers()])
    shutil.rmtree(report / "logs", ignore_errors=True)
    _keep_logs(cluster, report / "logs")
    cluster.down(delete=True)
    return left


def _keep_logs(cluster: Cluster, folder: Path) -> None:
    """Copy the logs of components and pods (by their place) before they are deleted."""
    for root in (cluster.home.logs, cluster.home.data / "node"):
        for file in root.rglob("*.log"):
            kept = folder / file.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, kept)


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    # One that waited in vain says nothing; what it waited for stands above.
    return str(error) or "that took too long; the logs are in the report's folder"


async def _until_signalled(settings: Settings, console: Console) -> int:
    task = asyncio.create_task(demo(settings, console))
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if not interrupted:  # a second Ctrl-C must not disturb the taking down
            interrupted = True
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        return INTERRUPTED


def settings_of(arguments: Sequence[str]) -> Settings:
    """Return the settings of a command line."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make demo")
    parser.add_argument("--days", type=_days, default=DAYS, help="first days only")
    parser.add_argument(
        "--cycle-seconds", type=float, default=CYCLE_SECONDS, help="length of an accelerated day"
    )
    parser.add_argument("--report", type=Path, default=Path("demo-report"), help="folder")
    parsed = parser.parse_args(arguments)
    return Settings(parsed.days, parsed.cycle_seconds, parsed.report)


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= DAYS_OF_THE_YEAR:
        raise argparse.ArgumentTypeError(f"{days} is not between 1 and {DAYS_OF_THE_YEAR}")
    return days


def main() -> None:
    """Run the demo and exit with its code."""
    settings = settings_of(sys.argv[1:])
    sys.exit(asyncio.run(_until_signalled(settings, Console())))


if __name__ == "__main__":
    main()
