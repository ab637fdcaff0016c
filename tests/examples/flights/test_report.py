"""The report: written, readable, and complete."""

import json
import xml.etree.ElementTree
from pathlib import Path

import pytest
from rich.console import Console

from examples.flights import display
from examples.flights.batch import statistics
from examples.flights.explanation import channel_rate, why
from examples.flights.observation import Decision, Observations, Sample
from examples.flights.plot import arrivals, svg_plot, text_plot
from examples.flights.report import Report
from examples.flights.settings import Plan, Settings
from examples.flights.verdict import Check, Outcome
from streamgraft_autoscaler.plot import Line, Panel, bars
from streamgraft_autoscaler.plot import svg_plot as general_svg_plot
from streamgraft_common.resources import WidthChange


def sample(seconds: float, **changes: object) -> Sample:
    """Return a sample at a moment, 100 flights a second sent."""
    values = {
        "seconds": seconds,
        "time_of_day": "06:00",
        "sent": int(seconds * 100),
        "processed": int(seconds * 90),
        "width_wanted": 1 if seconds < 5 else 3,
        "width_serving": 1 if seconds < 8 else 3,
        "demand": None if seconds < 3 else 2.4,
        "utilization": 0.7,
        "channel_rate": 120.0,
        "condition": "ReadyForNewScale",
    }
    return Sample(**{**values, **changes})  # type: ignore[arg-type]


SAMPLES = [sample(float(second)) for second in range(12)]


@pytest.fixture(scope="module")
def report() -> Report:
    """A report on one day of flights, with one wrong value and one change of width."""
    plan = Plan.of(Settings(days=1, cycle_seconds=24.0))
    expected = statistics(plan.flights)
    streamed = {**expected, ("EWR", "UA"): {**expected["EWR", "UA"], "late": -1}}
    change = WidthChange(
        from_width=1,
        to_width=3,
        epoch=2,
        requested_at="2013-01-01T06:00:00.000Z",
        serving_at="2013-01-01T06:00:03.500Z",
        moved_shards=[1, 2],
        pause_seconds_max=0.75,
    )
    observations = Observations(
        samples=SAMPLES,
        decisions=[Decision(5.2, 3, "New size: 3; reason: above target", "100 flights/s arrive")],
    )
    outcome = Outcome(len(plan.flights), plan.peak, streamed, expected, observations, [change], [])
    return Report(plan, outcome, [Check("Nothing is lost", True, "842 of 842")])


def test_markdown_has_everything(report: Report) -> None:
    """The load, the promises, the decisions, the pauses, and every key."""
    text = report.markdown()
    assert "842 flights" in text
    assert "| ✓ | Nothing is lost | 842 of 842 |" in text
    assert "| 5 s | 06:00 | 3 | New size: 3; reason: above target | 100 flights/s arrive |" in text
    assert "| 1 → 3 | 1, 2 | 0.75 | 0 | 06:00:00.000 | 06:00:03.500 |" in text
    rows = [line for line in text.splitlines() if line.startswith(("| EWR |", "| JFK |", "| LGA"))]
    assert len(rows) == len(report.outcome.batch)
    wrong = [row for row in rows if not row.endswith("| equal |")]
    assert [(row[:13], row[-9:]) for row in wrong] == [("| EWR | UA | ", " | late |")]


def test_files(report: Report, tmp_path: Path) -> None:
    """Markdown, JSON that machines can read, and a picture that is XML."""
    report.write(tmp_path / "demo")
    document = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert document["flights"] == 842
    assert document["changes"][0]["pauseSecondsMax"] == 0.75
    assert len(document["samples"]) == len(SAMPLES)
    picture = xml.etree.ElementTree.parse(tmp_path / "demo" / "run.svg").getroot()
    assert len(picture.findall("{http://www.w3.org/2000/svg}polyline")) == 5


def test_terminal(report: Report) -> None:
    """The live view and the final one can be printed."""
    console = Console(width=160, record=True)
    console.print(display.progress(report.plan, report.outcome.observations))
    display.show(console, report)
    display.show_checks(console, report)
    text = console.export_text()
    assert "3 wanted, 3 serving" in text
    assert "1 → 3" in text
    assert "✓ Nothing is lost" in text


def test_kept(report: Report) -> None:
    """One broken promise breaks the report."""
    assert report.kept
    assert not Report(report.plan, report.outcome, [Check("x", False, "y")]).kept
    missed = Check("x", False, "y", aim=True)
    assert Report(report.plan, report.outcome, [missed]).kept
    assert missed.mark == "◦"


def test_why() -> None:
    """The load, the capacity and what holds the width; nothing while the demand has no value, and
    the last reason while it has none because the width changes."""
    load: dict[str, object] = {"input_rate": 1234.0, "capacity": {"true_rate": 800.0}}
    inputs: dict[str, object] = {"stage": "0", "stages": {"0": {"load": load, "backlog": 5000.0}}}
    inputs |= {"needed": 2, "held": ["a change costs more than it saves"]}
    demand = {"value": 1.0, "inputs": inputs}
    assert why({"signals": {"demand": demand}}) == (
        "1,234 flights/s arrive, 5,000 wait; a busy channel does 800 a second;"
        " the load needs 2 channels; a change costs more than it saves"
    )
    assert channel_rate({"signals": {"demand": demand}}) == 800
    load["capacity"] = None
    inputs |= {"held": [], "needed": 1}
    assert channel_rate({"signals": {"demand": demand}}) is None
    assert why({"signals": {"demand": demand}}) == (
        "1,234 flights/s arrive, 5,000 wait; the load needs 1 channel"
    )
    assert why({"signals": {"demand": {"reason": "Resizing"}}}) is None
    unknown = {"signals": {"demand": {"reason": "WarmingUp"}}}
    assert (why(unknown), channel_rate(unknown)) == ("", None)


def test_arrivals() -> None:
    """Differences of what was sent; nothing is known before the first."""
    assert arrivals(SAMPLES)[:3] == [None, 100.0, 100.0]
    assert arrivals([]) == []


def test_bars_keep_the_peak() -> None:
    """A column shows the largest of its values, so that no peak is lost; unknown is a space."""
    assert bars([0.0, 8.0, None, None, 4.0, 2.0], 3) == "█ ▄"
    assert bars([], 10) == ""
    assert bars([0.0, 0.0], 10) == "  "


def test_plots_of_nothing() -> None:
    """A run that ended before its first sample still has a report."""
    assert text_plot([])
    xml.etree.ElementTree.fromstring(svg_plot([]))


@pytest.mark.parametrize(
    ("value", "text"),
    [(94570.0, "94,570"), (4.003, "4"), (4.0, "4"), (0.5, "0.5"), (2.25, "2.25"), (12.3, "12.3")],
)
def test_labels_are_as_people_write_numbers(value: float, text: str) -> None:
    panel = Panel("p", (Line("l", "black", (0.0, value)),))
    assert f">{text}<" in general_svg_plot([panel], [0.0, 1.0])
