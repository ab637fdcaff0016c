"""What the demo promises, checked: each promise with what was seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from examples.flights.batch import Result
from examples.flights.comparison import differences, flights_of
from examples.flights.observation import Decision, Observations
from streamgraft_common.resources import WidthChange

SERVING_SECONDS = 8.0
SERVING_SHARE = 1 / 3
"""Of what a pod takes to start on the same machine, if that is more than SERVING_SECONDS."""
PAUSE_SECONDS = 1.0
BACKLOG_SECONDS = 15.0


@dataclass(frozen=True)
class Check:
    """One promise or aim: kept or not, and what was seen."""

    promise: str
    kept: bool
    seen: str
    timed: bool = False
    """Whether it depends on how fast the machine is, and what else runs on it."""
    aim: bool = False
    """Whether it is no promise yet."""

    @property
    def mark(self) -> str:
        """A character for a list: kept, broken, or an aim that was missed."""
        if self.kept:
            return "✓"
        return "◦" if self.aim else "✗"


@dataclass(frozen=True)
class Outcome:
    """The results of a run and what was observed."""

    flights: int
    """Flights that were to be replayed."""
    peak: float
    """Flights a second in the busiest hour."""
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
        _warm(outcome.observations),
        _sooner(outcome),
        _dashboard(outcome.empty_queries),
        _serving(outcome),
        _pauses(outcome.changes),
        _backlog(outcome),
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
    seen = f"same UID and restart count; pods outside of the region: {len(before)}"
    if changed:
        seen = f"changed: {', '.join(changed)}"
    return Check("The neighbours' pods were not touched", bool(before) and not changed, seen)


def _clean(changes: Sequence[WidthChange]) -> Check:
    unclean = sum(change.unclean_releases for change in changes)
    moved = sum(len(change.moved_shards) for change in changes)
    seen = f"{moved} shards moved in {len(changes)} changes, {unclean} not at a batch boundary"
    return Check("Every shard moved at a batch boundary", unclean == 0, seen)


def _warm(observations: Observations) -> Check:
    cold = [pod.name for pod in observations.first_wave if pod.uid not in observations.prepared]
    seen = f"{len(observations.first_wave)} channels, in pods that were ready before"
    if cold:
        seen = f"started for it: {', '.join(cold)}"
    kept = bool(observations.first_wave) and not cold
    return Check("The first wave was met warm", kept, seen)


def _sooner(outcome: Outcome) -> Check:
    """Check the wave's time in units of what the same machine takes to start a pod.

    Where a pod starts within seconds, the batches that end first are most of a wave's time.
    """
    starts = outcome.observations.starts
    usual = max(SERVING_SECONDS, median(starts)) if starts else 0.0
    wider = [change for change in outcome.changes if change.to_width > change.from_width]
    took = _serving_seconds(wider[0]) if wider else None
    seen = "no wave was served" if took is None else f"{took:.1f} s; a pod takes {usual:.0f} s"
    kept = took is not None and took < usual
    return Check("The first wave serves sooner than a pod starts", kept, seen)


def _serving_seconds(change: WidthChange) -> float | None:
    if change.serving_at is None:
        return None
    asked = datetime.fromisoformat(change.requested_at)
    return (datetime.fromisoformat(change.serving_at) - asked).total_seconds()


def _dashboard(empty: Sequence[str]) -> Check:
    seen = f"no data for {'; '.join(empty)}" if empty else "all of them"
    return Check("Every query of the Grafana dashboard returns data", not empty, seen)


def _serving(outcome: Outcome) -> Check:
    starts = outcome.observations.starts
    most = max(SERVING_SECONDS, SERVING_SHARE * median(starts) if starts else 0.0)
    wider = [change for change in outcome.changes if change.to_width > change.from_width]
    took = [seconds for change in wider if (seconds := _serving_seconds(change)) is not None]
    slowest = max(took, default=0.0)
    kept = slowest <= most and len(took) == len(wider)
    seen = f"{slowest:.1f} s at most, in {len(took)} of {len(wider)} changes"
    why = f"{SERVING_SECONDS:g} s, or a third of a start"
    promise = f"New channels serve within {most:.1f} s ({why})"
    return Check(promise, kept, seen, timed=True)


def _pauses(changes: Sequence[WidthChange]) -> Check:
    longest = max((change.pause_seconds_max or 0.0 for change in changes), default=0.0)
    promise = f"No shard pauses for more than {PAUSE_SECONDS:g} s"
    return Check(
        promise, longest <= PAUSE_SECONDS, f"{longest:.2f} s at most", timed=True, aim=True
    )


def _backlog(outcome: Outcome) -> Check:
    waiting = max((sample.waiting for sample in outcome.observations.samples), default=0)
    seconds = waiting / outcome.peak
    seen = f"{waiting:,} flights at most: {seconds:.1f} s of the busiest hour"
    promise = f"What waits is never more than {BACKLOG_SECONDS:g} s of the busiest hour"
    return Check(promise, seconds <= BACKLOG_SECONDS, seen, timed=True)
