"""The live view of a run in the terminal, and the report at its end."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from examples.flights.observation import Observations
from examples.flights.plot import text_plot
from examples.flights.report import CHANGE_COLUMNS, DECISION_COLUMNS, KEY_COLUMNS, Report
from examples.flights.settings import MAX_WIDTH, Plan
from streamgraft_autoscaler.plot import bars

_STYLES = {"✓": "green", "✗": "bold red", "◦": "yellow"}
_COLUMNS = 60


def progress(plan: Plan, seen: Observations) -> RenderableType:
    """Return the view of the moment."""
    if not seen.samples:
        return Text("waiting for the first sample")
    now = seen.samples[-1]
    total = len(plan.flights)
    table = Table.grid(padding=(0, 2))
    clock = plan.settings.clock
    day = f"day {clock.cycle(now.seconds)} of {clock.cycles}, {now.time_of_day}"
    table.add_row("Clock", f"{now.seconds:5.0f} s   {day if now.time_of_day else 'replay is over'}")
    table.add_row("Flights", f"{now.sent:,} sent, {now.processed:,} in the result, of {total:,}")
    waiting = bars([float(sample.waiting) for sample in seen.samples], _COLUMNS)
    table.add_row("Waiting", f"{now.waiting:,}   {waiting}")
    width = f"{now.width_wanted} wanted, {now.width_serving} serving, {MAX_WIDTH} at most"
    table.add_row("Channels", f"{width}   demand {_number(now.demand, 2)}")
    table.add_row("", bars([*_widths(seen), float(MAX_WIDTH)], _COLUMNS)[:-1])
    busy = "" if now.utilization is None else f"{now.utilization:.0%}"
    table.add_row("Busy", busy)
    table.add_row("HPA", now.condition[:100])
    for decision in seen.decisions[-3:]:
        table.add_row("", f"{decision.seconds:.0f} s: {decision.message[:100]}")
    return Panel(table, title="Flights of New York, 2013", title_align="left")


def show(console: Console, report: Report) -> None:
    """Print the report."""
    console.rule("Report")
    console.print(text_plot(report.outcome.observations.samples), highlight=False, soft_wrap=True)
    tables = [
        _table("Decisions of the HPA", DECISION_COLUMNS, report.decisions()),
        _table("Width changes", CHANGE_COLUMNS, report.changes()),
        _table("Result, streamed and batch", KEY_COLUMNS, report.keys()),
    ]
    console.print(Group(*tables))


def show_checks(console: Console, report: Report) -> None:
    """Print which promises were kept."""
    for check in report.checks:
        style = _STYLES[check.mark]
        console.print(Text(f"{check.mark} {check.promise}: {check.seen}", style=style))


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    return table


def _widths(seen: Observations) -> list[float]:
    return [float(sample.width_serving) for sample in seen.samples]


def _number(value: float | None, digits: int = 0) -> str:
    return "?" if value is None else f"{value:,.{digits}f}"


def line(seen: Observations) -> str:
    """Return the moment in one line, for output that is not a terminal."""
    now = seen.samples[-1]
    return (
        f"{now.seconds:4.0f} s {now.time_of_day:>5}  sent {now.sent:>7,}"
        f"  in the result {now.processed:>7,}  waiting {now.waiting:>7,}"
        f"  width {now.width_serving}/{now.width_wanted}  demand {_number(now.demand, 2)}"
        f"  busy {_number(now.utilization, 2)}  {now.condition[:60]}"
    )
