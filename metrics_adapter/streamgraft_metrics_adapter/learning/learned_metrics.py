"""What was learned, as metrics: exported by every replica, and read back from Prometheus.

So a replica that starts knows what the others know, and one that missed a refresh catches up.
Without it each would decide on its own for as long as it takes to see all loads of a day.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from streamgraft_autoscaler import CapacitySample
from streamgraft_autoscaler.pause import MeasuredPause
from streamgraft_metrics_adapter.prometheus import text
from streamgraft_metrics_adapter.prometheus.source import Row
from streamgraft_metrics_adapter.regions import RegionKey
from streamgraft_metrics_adapter.time_slices import in_slices

_PREFIX = "streamgraft_learned"
_SAMPLE = {
    "records": "Records of the busy seconds of a stage in a load band; older ones count less",
    "busy_seconds": "Busy seconds of all channels of a stage in a load band; older ones count less",
    "seen_timestamp_seconds": "When a stage was last seen in a load band",
}
_PAUSE = {
    "pause_seconds": "Longest pause of a width change, by when it was asked for",
    "pause_state_bytes": "State of the largest shard at a width change, by when it was asked for",
}
_NEEDED, _SINCE = "needed_timestamp_seconds", "needs_known_since_timestamp_seconds"
_NEEDS = {
    _NEEDED: "When a width was last needed, of those that counted within a day",
    _SINCE: "Since when it is known which widths were needed",
}
_TEXTS = _SAMPLE | _PAUSE | _NEEDS
_TIMES = frozenset({"seen_timestamp_seconds", _NEEDED, _SINCE})
_CLOCKS_SECONDS = 60.0
"""By how much the clocks of two replicas may differ."""
WIDTH_MAX = 1024
LOOKS = ("5m", "1d")
"""How far back to look for what was exported: further only if there is nothing."""


_OfReplica = tuple[RegionKey, frozenset[tuple[str, str]]]
"""A region, and all labels of what a replica has exported of it."""


@dataclass(slots=True)
class Learned:
    """What was learned: capacities by region and stage, pauses by region and time, and needs."""

    samples: list[tuple[RegionKey, str, CapacitySample]] = field(default_factory=list)
    pauses: list[tuple[RegionKey, int, MeasuredPause]] = field(default_factory=list)
    """When the change was asked for is in whole Unix seconds."""
    needed: dict[_OfReplica, dict[int, float]] = field(default_factory=dict)
    """When each width was needed last (Unix time), as one replica remembers it."""
    since: dict[_OfReplica, float] = field(default_factory=dict)
    """Since when it remembers that (Unix time). Replicas are told apart: what one has seen until a
    gap, and another one behind it, is not known in between."""

    def __bool__(self) -> bool:
        """Return whether there is anything."""
        return bool(self.samples or self.pauses or self.since)


def query(look: str, targets: str) -> str:
    """Return the PromQL of all that replicas have exported lately; `targets`: the matchers of the
    labels that Prometheus gives the adapter's own targets."""
    names = "|".join(_TEXTS)
    return f'last_over_time({{__name__=~"{_PREFIX}_({names})",{targets}}}[{look}])'


def lines(
    samples: Iterable[tuple[RegionKey, str, CapacitySample]],
    pauses: Iterable[tuple[RegionKey, int, MeasuredPause]],
    needs: Iterable[tuple[RegionKey, float, Mapping[int, float]]],
) -> Iterator[str]:
    """Yield the lines of the exposition."""
    lines: dict[str, list[str]] = {name: [] for name in _TEXTS}
    for key, stage, sample in samples:
        band = text.labels(stage=stage, band=f"{sample.band:g}", width=str(sample.width))
        labels = f"{_place(key)},{band}"
        values = (sample.records, sample.busy_seconds, sample.seen_at)
        for name, value in zip(_SAMPLE, values, strict=True):
            lines[name].append(f"{_PREFIX}_{name}{{{labels}}} {value!r}")
    for key, changed_at, pause in pauses:
        labels = f'{_place(key)},changed_at="{changed_at}"'
        for name, value in zip(_PAUSE, (pause.seconds, pause.state_bytes), strict=True):
            lines[name].append(f"{_PREFIX}_{name}{{{labels}}} {value!r}")
    for key, since, needed in needs:
        lines[_SINCE].append(f"{_PREFIX}_{_SINCE}{{{_place(key)}}} {since!r}")
        for width, time in needed.items():
            labels = f'{_place(key)},width="{width}"'
            lines[_NEEDED].append(f"{_PREFIX}_{_NEEDED}{{{labels}}} {time!r}")
    for name, description in _TEXTS.items():
        yield f"# HELP {_PREFIX}_{name} {description}"
        yield f"# TYPE {_PREFIX}_{name} gauge"
        yield from lines[name]


async def parse(rows: Iterable[Row], now: float) -> Learned:
    """Return what the rows of `query`, evaluated at a Unix time, tell of each replica, in time
    slices. What can't be is left out."""
    groups: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
    async for labels, value in in_slices(rows):
        name = labels["__name__"].removeprefix(f"{_PREFIX}_")
        rest = frozenset(item for item in labels.items() if item[0] != "__name__")
        groups.setdefault(rest, {})[name] = value
    found = Learned()
    async for rest, values in in_slices(groups.items()):
        # Whatever has these names in Prometheus need not be ours.
        with suppress(KeyError, ValueError):
            _add(found, dict(rest), values, now + _CLOCKS_SECONDS)
    return found


def _add(
    found: Learned, labels: Mapping[str, str], values: Mapping[str, float], latest: float
) -> None:
    """Take in one thing that was learned until the Unix time `latest`.

    Raises ValueError if it makes no sense, KeyError if something is missing.
    """
    key = (labels["namespace"], labels["streams_job"], labels["region"])
    times = (value for name, value in values.items() if name in _TIMES)
    if not all(map(math.isfinite, values.values())):
        raise ValueError("no number")
    if not all(0 < time <= latest for time in times):
        raise ValueError("a time to come")
    if not 0 <= int(labels.get("width", "0")) <= WIDTH_MAX:
        raise ValueError("no width that a region can have")
    replica = frozenset(item for item in labels.items() if item[0] != "width")
    if _SINCE in values:
        found.since[key, replica] = values[_SINCE]
        return
    if _NEEDED in values:
        found.needed.setdefault((key, replica), {})[int(labels["width"])] = values[_NEEDED]
        return
    if "changed_at" in labels:
        changed_at = int(labels["changed_at"])
        if changed_at > latest:
            raise ValueError("a time to come")
        pause = MeasuredPause(*(values[name] for name in _PAUSE))
        found.pauses.append((key, changed_at, pause))
        return
    records, busy_seconds, seen_at = (values[name] for name in _SAMPLE)
    band, width = float(labels["band"]), int(labels["width"])
    sample = CapacitySample(band, width, records, busy_seconds, seen_at)
    found.samples.append((key, labels["stage"], sample))


def _place(key: RegionKey) -> str:
    namespace, job, region = key
    return text.labels(namespace=namespace, streams_job=job, region=region)
