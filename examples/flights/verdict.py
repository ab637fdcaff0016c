"""What the demo promises, checked: each promise with what was seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from examples.flights.batch import Result
from examples.flights.comparison import differences, flights_of
from examples.flights.observation import Decision, Observations
from streamgraft_common.resources import WidthChange


@dataclass(frozen=True)
class Check:
    """One promise: kept or not, and what was seen."""

    promise: str
    kept: bool
    seen: str


@dataclass(frozen=True)
class Outcome:
    """The results of a run and what was observed."""

    flights: int
    """Flights that were to be replayed."""
    streamed: Result
    batch: Result
    observations: Observations
    changes: Sequence[WidthChange]
    """Width changes as the region's status has them."""
    empty_queries: Sequence[str]
    """Queries of the Grafana dashboard that returned nothing from the run's Prometheus."""


def checks(outcome: Outcome) -> list[Check]:
    """Return the promises that can be checked before the environment is taken down."""
    return [
        _complete(outcome),
        _equal(outcome),
        *_scaled(outcome.observations.decisions),
        _neighbours(outcome.observations),
        _clean(outcome.changes),
        _dashboard(outcome.empty_queries),
    ]


def nothing_left(processes: Sequence[str]) -> Check:
    """Return the check of what still runs after everything was taken down: command lines."""
    seen = "nothing" if not processes else "; ".join(processes)
    return Check("Nothing is left running", not processes, seen)


def directions(decisions: Sequence[Decision], first_width: int = 1) -> tuple[int, int]:
    """Return how often the HPA widened and narrowed a region that began with `first_width`."""
    widths = [first_width, *(decision.width for decision in decisions)]
    steps = [new - old for old, new in pairwise(widths)]
    return sum(step > 0 for step in steps), sum(step < 0 for step in steps)


def _complete(outcome: Outcome) -> Check:
    processed = flights_of(outcome.streamed)
    seen = f"{processed:,} of {outcome.flights:,} flights are in the result"
    return Check("No flight is lost or counted twice", processed == outcome.flights, seen)


def _equal(outcome: Outcome) -> Check:
    found = differences(outcome.streamed, outcome.batch)
    seen = f"{len(outcome.batch)} keys, every value equal"
    if found:
        seen = f"{len(found)} differences, first: {'; '.join(map(str, found[:3]))}"
    return Check("The streamed result equals the batch result", not found, seen)


def _scaled(decisions: Sequence[Decision]) -> list[Check]:
    up, down = directions(decisions)
    return [
        Check("The HPA widened the region", up > 0, f"{up} times"),
        Check("The HPA narrowed the region", down > 0, f"{down} times"),
    ]


def _neighbours(observations: Observations) -> Check:
    before, after = observations.neighbours_before, observations.neighbours_after
    changed = [pe for pe, pod in before.items() if after.get(pe) != pod]
    seen = f"{len(before)} pods outside of the region, same UID and restart count"
    if changed:
        seen = f"changed: {', '.join(changed)}"
    return Check("The neighbours' pods were not touched", bool(before) and not changed, seen)


def _clean(changes: Sequence[WidthChange]) -> Check:
    unclean = sum(change.unclean_releases for change in changes)
    moved = sum(len(change.moved_shards) for change in changes)
    seen = f"{moved} shards moved in {len(changes)} changes, {unclean} not at a batch boundary"
    return Check("Every shard moved at a batch boundary", unclean == 0, seen)


def _dashboard(empty: Sequence[str]) -> Check:
    seen = f"no data for {'; '.join(empty)}" if empty else "all of them"
    return Check("Every query of the Grafana dashboard returns data", not empty, seen)
