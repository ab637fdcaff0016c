"""A live run beside what the simulator says of it: `make bench-prediction CASES=DEMO-REPORT`.

Takes the folder of a report of `make demo`: the load that arrived is replayed with the HPA of the
demo's region, on a simulated region that is told what that run measured: what a channel can do, how
long new ones took to serve, and how long moved shards stood still. The simulator's HPA looks every
15 s and the demo's every 2 s, so times are stretched by as much, and rates shrink.
"""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench import report
from bench.partitioner import key_group
from examples.flights.app import app, quick
from examples.flights.settings import BATCH_SECONDS, MAX_WIDTH, Settings
from streamgraft_autoscaler import DemandPolicy
from streamgraft_autoscaler.hpa import DEFAULT_SYNC_SECONDS, Spec, spec_of
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.replay import Experiment, RegionModel, Trace, replay
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.manifests.autoscaler import autoscaler

SHARDS = app.graph.regions[0].max_width
"""Key groups of the demo's region."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Course:
    """A run as the demo's clock tells it: (seconds, channels wanted), and the largest lag."""

    wanted: Sequence[tuple[float, int]]
    largest_lag: float

    def width_at(self, seconds: float) -> int:
        """Return the width that was wanted at a time."""
        return [width for at, width in self.wanted if at <= max(seconds, self.wanted[0][0])][-1]

    @property
    def changes(self) -> int:
        """Return how often another width was wanted."""
        return sum(before[1] != after[1] for before, after in pairwise(self.wanted))


def live(document: Document) -> Course:
    """Return what the demo saw."""
    samples = document["samples"]
    wanted = [(sample["seconds"], sample["width_wanted"]) for sample in samples]
    return Course(wanted, max(sample["sent"] - sample["processed"] for sample in samples))


def predicted(document: Document) -> Course:
    """Return what the simulator says of the same load."""
    spec, samples = Settings().cluster, document["samples"]
    stretch = DEFAULT_SYNC_SECONDS / spec.hpa_sync_seconds
    launches = [_seconds(change, "servingAt") for change in document["changes"] if _grew(change)]
    pauses = [change["pauseSecondsMax"] for change in document["changes"]]
    pause = statistics.median(pauses) * stretch
    shares = _shares(document["batch"])
    model = RegionModel(
        true_rate=statistics.median(rate for it in samples if (rate := it["channel_rate"]))
        / stretch,
        shards=SHARDS,
        largest_shard=max(shares),
        median_shard=statistics.median(shares),
        batch_seconds=BATCH_SECONDS * stretch,
        launch_seconds=statistics.median(launches) * stretch,
        pause_seconds=pause,
    )
    policy = DemandPolicy(
        min_width=1,
        max_width=MAX_WIDTH,
        shards=SHARDS,
        target_utilization=quick.target_utilization,
        headroom=quick.headroom,
        price=ChangePrice.given(quick.change_cost_seconds or 0.0),
        catch_up_seconds=quick.catch_up_seconds * stretch,
        pause=ExpectedPause(pause, pause, 0.0, len(pauses)),
    )
    window = spec.metrics_window_seconds * stretch
    trace = _load(document["samples"], stretch)
    experiment = Experiment(trace, model, _hpa(stretch), policy, 60.0 * stretch, window)
    found = replay(experiment, 1)
    wanted = [(sample.seconds / stretch, sample.wanted) for sample in found.samples]
    return Course(wanted, max(sample.lag for sample in found.samples))


def _shares(flights: Mapping[str, Document]) -> list[float]:
    """Return the share of the flights of each key group."""
    found = [0] * SHARDS
    for name, counted in flights.items():
        key = json.dumps(name.split("-", 1), separators=(",", ":"))
        found[key_group(key.encode(), SHARDS)] += counted["flights"]
    return [count / sum(found) for count in found]


def _grew(change: Document) -> bool:
    return bool(change["toWidth"] > change["fromWidth"])


def _seconds(change: Document, until: str) -> float:
    return from_rfc3339(change[until]) - from_rfc3339(change["requestedAt"])


def _load(samples: Sequence[Document], stretch: float) -> Trace:
    """Return the arrivals, looked at as often as the HPA looks."""
    step, rates, before = DEFAULT_SYNC_SECONDS / stretch, list[float](), samples[0]
    for sample in samples[1:]:
        if sample["seconds"] - before["seconds"] >= step:
            seconds = sample["seconds"] - before["seconds"]
            rate = (sample["sent"] - before["sent"]) / seconds / stretch
            rates += [rate] * round(seconds / step)
            before = sample
    return Trace("flights", float(DEFAULT_SYNC_SECONDS), tuple(rates))


def _hpa(stretch: float) -> Spec:
    """Return the HPA that the demo's region gets, stretched."""
    stretched = quick.model_copy(
        update={
            "scale_up_seconds": round(quick.scale_up_seconds * stretch),
            "scale_down_seconds": round(quick.shrinks_after_seconds * stretch),
        }
    )
    spec = {"job": "flights", "region": "enrich", "width": 1, "maxWidth": SHARDS, "key": []}
    spec["autoscaling"] = stretched.model_dump(mode="json", by_alias=True)
    region = PARALLEL_REGION.manifest("flights-enrich", "demo", spec)
    region["metadata"]["uid"] = ""
    made = autoscaler(region)
    assert made is not None
    return spec_of(made)


def main() -> None:
    """Compare a run with its prediction, second by second."""
    document: Document = json.loads((Path(sys.argv[1]) / "report.json").read_text())
    seen, said = live(document), predicted(document)
    seconds = [float(second) for second in range(int(seen.wanted[-1][0]))]
    widths = [(seen.width_at(second), said.width_at(second)) for second in seconds]
    for second in range(0, len(widths), 10):
        print(f"{second:4d} s  live {widths[second][0]}  predicted {widths[second][1]}")
    figures = {
        "same_width_share": round(sum(a == b for a, b in widths) / len(widths), 2),
        "mean_width.live": round(statistics.mean(a for a, _ in widths), 2),
        "mean_width.predicted": round(statistics.mean(b for _, b in widths), 2),
        "changes.live": seen.changes,
        "changes.predicted": said.changes,
        "largest_lag.live": round(seen.largest_lag),
        "largest_lag.predicted": round(said.largest_lag),
    }
    settings = {"seconds": len(seconds), "flights": document["flights"]}
    report.write("prediction", settings, figures)


if __name__ == "__main__":
    main()
