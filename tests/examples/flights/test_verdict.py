"""The promises: each can be broken, and then says what was seen."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from examples.flights.observation import Decision, Observations, Pod, Sample
from examples.flights.verdict import Outcome, checks, directions, nothing_left
from streamgraft_common.resources import WidthChange

POD = Pod("flights-0-1", "uid-1", "flights-0", None, 0)
CHANNEL = Pod("warm-3", "uid-3", "flights-1-1", "enrich", 0)
CHANGE = WidthChange(
    from_width=1,
    to_width=2,
    epoch=2,
    requested_at="2013-01-01T06:00:00.000Z",
    serving_at="2013-01-01T06:00:02.000Z",
    moved_shards=[1, 3],
    pause_seconds_max=0.4,
)
SAMPLE = Sample(5.0, "06:00", 9, 7, 1, 1, 1.0, 0.5, 99.0, "ReadyForNewScale")
RESULT = {("EWR", "UA"): {"flights": 7, "late": 2}}


def outcome() -> Outcome:
    """Return an outcome that keeps every promise."""
    observations = Observations(
        samples=[SAMPLE],
        decisions=[Decision(5.0, 3, "New size: 3"), Decision(60.0, 1, "New size: 1")],
        neighbours_before={"flights-0": POD},
        neighbours_after={"flights-0": POD},
        prepared={"uid-1", "uid-3"},
        starts=[30.0, 20.0, 50.0],
        first_wave=[CHANNEL],
    )
    return Outcome(7, 10.0, RESULT, RESULT, observations, [CHANGE], [])


def broken(changed: Outcome) -> list[str]:
    """Return the promises that are not kept."""
    return [check.promise for check in checks(changed) if not check.kept]


def test_all_kept() -> None:
    """Nothing to complain about."""
    assert broken(outcome()) == []


@pytest.mark.parametrize(
    ("changes", "promise"),
    [
        ({"flights": 8}, "No flight is lost or counted twice"),
        (
            {"streamed": {("EWR", "UA"): {"flights": 7, "late": 3}}},
            "The streamed result equals the batch result",
        ),
        (
            {"changes": [CHANGE.model_copy(update={"unclean_releases": 1})]},
            "Every shard moved at a batch boundary",
        ),
        (
            {"changes": [CHANGE.model_copy(update={"serving_at": "2013-01-01T06:00:11.000Z"})]},
            "New channels serve within 10.0 s (8 s, or a third of a start)",
        ),
        (
            {"changes": [CHANGE, CHANGE.model_copy(update={"serving_at": None})]},
            "New channels serve within 10.0 s (8 s, or a third of a start)",
        ),
        (
            {"changes": [CHANGE.model_copy(update={"pause_seconds_max": 1.1})]},
            "No shard pauses for more than 1 s",
        ),
        ({"peak": 0.1}, "What waits is never more than 15 s of the busiest hour"),
        ({"empty_queries": ["up"]}, "Every query of the Grafana dashboard returns data"),
    ],
)
def test_broken_promise(changes: dict[str, object], promise: str) -> None:
    """One thing wrong breaks one promise."""
    assert broken(replace(outcome(), **changes)) == [promise]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "starts", "kept"),
    [
        (12.8, [60.0, 40.0, 90.0], True),  # half as fast
        (29.0, [20.0, 30.0, 200.0], True),
        (31.0, [20.0, 30.0, 200.0], False),
        (100.0, [30.0, 40.0, 60.0], False),
        (7.0, [2.0], True),  # batches that end first take most of it
        (9.0, [2.0], False),
        (2.0, [], False),  # no pod was ready before
        (None, [30.0], False),
    ],
)
def test_a_wave_that_is_met_warm_is_measured_by_what_a_pod_takes_here(
    seconds: float | None, starts: list[float], kept: bool
) -> None:
    """However fast the machine is; later waves may find no warm pod."""
    run = outcome()
    run.observations.starts = starts
    asked = datetime.fromisoformat(CHANGE.requested_at)
    at = None if seconds is None else (asked + timedelta(seconds=seconds)).isoformat()
    first = CHANGE.model_copy(update={"serving_at": at})
    narrower = CHANGE.model_copy(update={"from_width": 2, "to_width": 1, "serving_at": None})
    later = CHANGE.model_copy(update={"serving_at": "2013-01-01T06:09:00.000Z"})
    found = broken(replace(run, changes=[narrower, first, later]))
    assert ("The first wave serves sooner than a pod starts" not in found) == kept


@pytest.mark.parametrize(
    ("seconds", "start", "kept"),
    [(7.9, 6.0, True), (8.1, 6.0, False), (10.9, 33.0, True), (11.1, 33.0, False)],
)
def test_each_wave_may_take_a_third_of_a_start_where_pods_start_slowly(
    seconds: float, start: float, kept: bool
) -> None:
    """Else a slow machine broke a promise that is about the pool."""
    run = outcome()
    run.observations.starts = [start]
    at = (datetime.fromisoformat(CHANGE.requested_at) + timedelta(seconds=seconds)).isoformat()
    found = broken(replace(run, changes=[CHANGE, CHANGE.model_copy(update={"serving_at": at})]))
    assert any(promise.startswith("New channels serve within") for promise in found) != kept


@pytest.mark.parametrize(
    "after",
    [
        {},
        {"flights-0": Pod("flights-0-2", "uid-2", "flights-0", None, 0)},
        {"flights-0": Pod("flights-0-1", "uid-1", "flights-0", None, 1)},
    ],
)
def test_touched_neighbours(after: dict[str, Pod]) -> None:
    """Gone, another pod, or restarted."""
    run = outcome()
    run.observations.neighbours_after = after
    assert broken(run) == ["The neighbours' pods were not touched"]


@pytest.mark.parametrize(
    "wave", [[], [CHANNEL, Pod("flights-1-2-1", "uid-9", "flights-1-2", "enrich", 0)]]
)
def test_a_wave_that_waits_for_drivers(wave: list[Pod]) -> None:
    """A pod was started for it, or nobody has seen one."""
    run = outcome()
    run.observations.first_wave = wave
    assert broken(run) == ["The first wave was met warm"]


def test_hpa_has_to_do_both() -> None:
    """Widening alone is not enough."""
    run = outcome()
    run.observations.decisions = [Decision(5.0, 3, "New size: 3")]
    assert broken(run) == ["The HPA narrowed the region"]


def test_directions() -> None:
    """1 → 3 → 4 → 2 → 1: twice up, twice down."""
    widths = [3, 4, 2, 1]
    decisions = [Decision(float(number), width, "") for number, width in enumerate(widths)]
    assert directions(decisions) == (2, 2)
    assert directions([]) == (0, 0)


def test_nothing_left() -> None:
    """What still runs is named."""
    assert nothing_left([]).kept
    check = nothing_left(["java -jar"])
    assert not check.kept
    assert "java -jar" in check.seen
