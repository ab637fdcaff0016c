"""The report of a run: for the terminal, as Markdown with a picture, and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from examples.flights.batch import Result
from examples.flights.comparison import differences
from examples.flights.plot import svg_plot, text_plot
from examples.flights.settings import Plan
from examples.flights.verdict import Check, Outcome
from streamgraft_common.resources import WidthChange


@dataclass(frozen=True)
class Report:
    """All that is told about a run."""

    plan: Plan
    outcome: Outcome
    checks: Sequence[Check]

    @property
    def kept(self) -> bool:
        """Whether every promise was kept; aims are none."""
        return all(check.kept or check.aim for check in self.checks)

    def write(self, folder: Path) -> None:
        """Write report.md, report.json and run.svg."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(self.markdown())
        (folder / "report.json").write_text(json.dumps(self.document(), indent=1) + "\n")
        (folder / "run.svg").write_text(svg_plot(self.outcome.observations.samples))

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        observations = self.outcome.observations
        clock = self.plan.settings.clock
        return {
            "flights": self.outcome.flights,
            "clock": asdict(clock),
            "peakFlightsPerSecond": round(self.plan.peak, 1),
            "serviceFlightsPerSecondPerConnection": round(self.plan.rate, 1),
            "checks": [asdict(check) for check in self.checks],
            "decisions": [asdict(decision) for decision in observations.decisions],
            "changes": [change.to_wire() for change in self.outcome.changes],
            "samples": [asdict(sample) for sample in observations.samples],
            "streamed": _by_text(self.outcome.streamed),
            "batch": _by_text(self.outcome.batch),
        }

    def markdown(self) -> str:
        """Return the report as Markdown."""
        samples = self.outcome.observations.samples
        sections = {
            "What ran": self.plan.describe(),
            "Promises": _table(
                ("", "Promise", "Seen"),
                [(check.mark, check.promise, check.seen) for check in self.checks],
            ),
            "Over time": f"![The run](run.svg)\n\n```\n{text_plot(samples)}\n```",
            "Decisions of the HPA": _table(DECISION_COLUMNS, self.decisions()),
            "Width changes": _table(CHANGE_COLUMNS, self.changes()),
            "Result, streamed and batch": _table(KEY_COLUMNS, self.keys()),
        }
        if failures := self.outcome.observations.failures:
            sections["What could not be read"] = "\n".join(f"- {item}" for item in failures)
        body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
        return f"# Flights, streamed\n\n{body}\n"

    def decisions(self) -> list[tuple[str, ...]]:
        """Return each decision of the HPA as texts: in DECISION_COLUMNS."""
        observations = self.outcome.observations
        rows: list[tuple[str, ...]] = []
        for decision in observations.decisions:
            day = [s.time_of_day for s in observations.samples if s.seconds <= decision.seconds]
            when = day[-1] if day else ""
            said = (decision.message, decision.why)
            rows.append((f"{decision.seconds:.0f} s", when, str(decision.width), *said))
        return rows

    def changes(self) -> list[tuple[str, ...]]:
        """Return each width change as texts in CHANGE_COLUMNS."""
        return [_change(change) for change in self.outcome.changes]

    def keys(self) -> list[tuple[str, ...]]:
        """Return each key as texts in KEY_COLUMNS; differing columns are named."""
        streamed, batch = self.outcome.streamed, self.outcome.batch
        differing: dict[tuple[str, str], list[str]] = {}
        for difference in differences(streamed, batch):
            differing.setdefault(difference.key, []).append(difference.column)
        rows: list[tuple[str, ...]] = []
        for key in sorted(streamed.keys() | batch.keys()):
            ours, theirs = streamed.get(key, {}), batch.get(key, {})
            verdict = ", ".join(differing.get(key, [])) or "equal"
            rows.append(
                (
                    *key,
                    _number(ours.get("flights")),
                    _number(theirs.get("flights")),
                    _hundredths(ours.get("dep_delay_mean_hundredths")),
                    _hundredths(theirs.get("dep_delay_mean_hundredths")),
                    _number(ours.get("carbon_dioxide_kilograms")),
                    _number(theirs.get("carbon_dioxide_kilograms")),
                    verdict,
                )
            )
        return rows


DECISION_COLUMNS = ("At", "Day", "Width", "The HPA", "Why")
KEY_COLUMNS = (
    *("Origin", "Carrier", "Flights", "(batch)", "Mean delay, min", "(batch)"),
    *("CO₂, kg", "(batch)", "All columns"),
)
CHANGE_COLUMNS = ("Width", "Shards moved", "Longest pause, s", "Not clean", "Requested", "Serving")


def _change(change: WidthChange) -> tuple[str, ...]:
    pause = change.pause_seconds_max
    return (
        f"{change.from_width} → {change.to_width}",
        ", ".join(map(str, change.moved_shards)),
        "" if pause is None else f"{pause:.2f}",
        str(change.unclean_releases),
        change.requested_at[11:23],
        (change.serving_at or "")[11:23],
    )


def _by_text(result: Result) -> dict[str, Any]:
    return {"-".join(key): values for key, values in sorted(result.items())}


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _hundredths(value: int | None) -> str:
    return "" if value is None else f"{value / 100:,.2f}"
