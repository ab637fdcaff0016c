"""The PromQL of the signals: each query brings several inputs, for all regions at once.

A partition's series changes with its owner, so everything about a partition is taken by its
labels and never by the pod. While it has no owner the last lag known counts, and rates follow from
the samples before. Offsets are gauges: after a crash a position steps back to the checkpoint,
which rate() would take for a counter that began anew, and add the whole log to the rate. So their
slope is taken.

Not every offset has a record: each transaction ends in a marker, so small ones fill half of a log.
What is counted in offsets becomes records by their share (`StageObservation.in_records`).
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from streamgraft_autoscaler.capacity import WARM_UP_BUSY_SECONDS
from streamgraft_autoscaler.forecast import BUCKET_SECONDS
from streamgraft_metrics_adapter.prometheus.text import alternatives

REGION = "namespace, streams_job, region"
STAGE = f"{REGION}, stage"
TOPIC = f"{STAGE}, topic"
PARTITION = f"{TOPIC}, partition"
_IN_REGIONS = '{region!=""}'
LEAST_SHARE = 0.5
"""A transaction has one marker in each partition, and a record at least."""
_NAMED_JOBS = 50
"""Up to so many jobs are named in a query; for more all are looked at."""


class Input(StrEnum):
    """An input of a signal; the value names it in explanations and self metrics."""

    LAG = "lag"
    """Records, by stage and topic."""
    PARTITIONS = "partitions"
    """Partitions with a known lag that was read at a known time, by stage and topic."""
    SAMPLE_TIME = "sample_time"
    """Unix time at which the positions of a partition were read from Kafka; the oldest of all
    partitions' newest ones, by region."""
    POSITION_AGE = "position_age"
    """How old positions were when they were scraped, seconds: the oldest of all partitions within
    the window, by region. A PE that can't ask Kafka shows old positions in fresh samples."""
    LAG_CHANGE = "lag_change"
    """Records/s, by stage."""
    HISTORIES = "histories"
    """Partitions whose rates are known: of those with two samples within the window, by stage."""
    RESETS = "resets"
    """How often committed positions stepped back within the window, by stage."""
    INPUT_RATE = "input_rate"
    """Records/s, by stage."""
    PROCESSING_RATE = "processing_rate"
    """Records/s, by stage."""
    RECORD_SHARE = "record_share"
    """Records by the offsets that were passed within the window, LEAST_SHARE to 1, by stage; not a
    number if none were."""
    BUSY_SLOTS = "busy_slots"
    """Busy task slots on average over the window, pods that are gone included, by stage."""
    WARM_SLOTS = "warm_slots"
    """Those of them in PEs that were warm when the window began, by stage."""
    BATCH_RATE = "batch_rate"
    """Batches with data per second of a query that has some, on average over channels, by stage."""
    SLOTS = "slots"
    """Task slots of a PE, by stage."""
    LARGEST_RATE = "largest_rate"
    """Records/s of INPUT_RATE that the fullest shard gets, by stage."""
    MEDIAN_RATE = "median_rate"
    """Records/s of it that half of the shards get at most, by stage."""
    STATE_BYTES = "state_bytes"
    """State of the largest shard, by region; 0 if there is none."""
    IDLE_SHARE = "idle_share"
    """Mean idle share of the PEs that hold shards, by stage."""
    ELEMENTS = "elements"
    """PEs in that mean, by stage."""


QUERIES: Mapping[str, tuple[Input, ...]] = {
    "lag": (Input.LAG, Input.PARTITIONS, Input.SAMPLE_TIME, Input.POSITION_AGE),
    "lag_change": (Input.LAG_CHANGE, Input.HISTORIES),
    "rates": (
        Input.INPUT_RATE,
        Input.PROCESSING_RATE,
        Input.RECORD_SHARE,
        Input.RESETS,
        Input.LARGEST_RATE,
        Input.MEDIAN_RATE,
    ),
    "busy": (Input.BUSY_SLOTS, Input.WARM_SLOTS, Input.BATCH_RATE, Input.SLOTS),
    "utilization": (Input.IDLE_SHARE, Input.ELEMENTS, Input.STATE_BYTES),
}
"""The inputs that each query brings."""

INPUT_LABEL = "input"
"""Tells the rows of a query's inputs apart."""


def queries(
    window_seconds: float, max_age_seconds: float, refresh_seconds: float
) -> dict[str, str]:
    """Return the queries by name; durations in seconds, the last one that between two of them."""
    inputs = _inputs(window_seconds, max_age_seconds, _step(window_seconds, refresh_seconds))
    return {
        name: " or ".join(
            f'label_replace({inputs[part]}, "{INPUT_LABEL}", "{part.value}", "", "")'
            for part in parts
        )
        for name, parts in QUERIES.items()
    }


def past_rates(jobs: Collection[str]) -> str:
    """Return the PromQL of the records/s that came in at regions of these jobs (and maybe others)
    in the quarter of an hour before: the mean of what INPUT_RATE is then.

    From the positions at its two ends: that looks at two samples of a partition, not at hundreds,
    and counts every record once. While a partition has no owner its last position counts.
    """
    # No first stage has another number; without PEs there may be no such label.
    chosen = 'region!="",stage=~"0|"'
    if len(jobs) <= _NAMED_JOBS:
        chosen += f",streams_job=~{alternatives(sorted(jobs))}"
    quarter = _duration(BUCKET_SECONDS)
    position = f"last_over_time(streamgraft_pe_input_end_offset{{{chosen}}}[5m]"
    then, before = (f"max by ({PARTITION}) ({position}{at}))" for at in ("", f" offset {quarter}"))
    offsets = f"sum by ({REGION}) ({then} - {before}) / {BUCKET_SECONDS:g}"
    share = _record_share(REGION, f"{{{chosen}}}", "5m")
    return f"{offsets} * ({share} >= 0) or {offsets}"  # PEs of former releases tell no share


def _record_share(by: str, chosen: str, window: str) -> str:
    rows, gaps = (
        f"sum by ({by}) (increase(streamgraft_pe_input_{name}_total{chosen}[{window}]))"
        for name in ("rows", "gaps")
    )
    return f"clamp_min(1 / (1 + {gaps} / {rows}), {LEAST_SHARE:g})"


def _inputs(window_seconds: float, max_age_seconds: float, step_seconds: float) -> dict[Input, str]:
    window, age = _duration(window_seconds), _duration(max_age_seconds)
    steps = f"[{window}:{_duration(step_seconds)}]"
    lag_now = _now("streamgraft_pe_lag_records")
    lag_last = _last("streamgraft_pe_lag_records", age)
    lag, end, committed = (
        f"({_now(metric)}){steps}"
        for metric in (
            "streamgraft_pe_lag_records",
            "streamgraft_pe_input_end_offset",
            "streamgraft_pe_committed_offset",
        )
    )
    samples = f"count_over_time(streamgraft_pe_lag_records{_IN_REGIONS}[{window}])"
    # Between two steps a series may end, whose last sample then counts as older than it is.
    looks = f"[{age}:{_duration(max(0.5, max_age_seconds / 4))}]"
    position_age = f"streamgraft_pe_position_age_seconds{_IN_REGIONS}"
    read = f"max_over_time((timestamp({position_age}) - {position_age}){looks})"
    age_last = f"min by ({PARTITION}) (last_over_time({position_age}[{age}]))"
    total = f"streamgraft_pe_busy_seconds_total{_IN_REGIONS}"
    busy = f"rate({total}[{window}])"
    warm = f"{total} - increase({total}[{window}]) > bool {WARM_UP_BUSY_SECONDS:g}"
    batches = f"streamgraft_pe_batch_duration_seconds_count{_IN_REGIONS}"
    # Shards without records have no batches, those of a query that have some share them.
    of_query = f"max by ({STAGE}, pod) (rate({batches}[{window}]))"
    slots = f"streamgraft_pe_slots{_IN_REGIONS}"
    # The histogram of a PE has no series before its first batch.
    nothing = f"0 * sum by ({STAGE}) ({slots})"
    # Partition i of every input topic belongs to shard i.
    by_shard = f"sum by ({STAGE}, partition) (deriv({end}))"
    state = f"max by ({REGION}) (streamgraft_pe_state_bytes{_IN_REGIONS})"
    of_owners = f"and on (namespace, pod) (streamgraft_pe_shards{_IN_REGIONS} > 0)"
    idle = f"1 - clamp_max({busy} / {slots}, 1)"
    return {
        Input.LAG: f"sum by ({TOPIC}) ({lag_now} or {lag_last})",
        Input.PARTITIONS: f"count by ({TOPIC}) ({lag_last} and {age_last})",
        Input.SAMPLE_TIME: f"min by ({REGION}) (max by ({PARTITION}) ({read}))",
        Input.POSITION_AGE: f"max by ({REGION}) (max_over_time({position_age}[{window}]))",
        Input.LAG_CHANGE: f"sum by ({STAGE}) (deriv({lag}))",
        Input.HISTORIES: f"count by ({STAGE}) (sum by ({PARTITION}) ({samples}) > 1)",
        Input.RESETS: f"sum by ({STAGE}) (resets({committed}))",
        Input.INPUT_RATE: f"sum by ({STAGE}) (deriv({end}))",
        Input.PROCESSING_RATE: f"sum by ({STAGE}) (deriv({committed}))",
        Input.RECORD_SHARE: _record_share(STAGE, _IN_REGIONS, window),
        Input.BUSY_SLOTS: f"sum by ({STAGE}) ({busy})",
        Input.WARM_SLOTS: f"sum by ({STAGE}) ({busy} * ({warm}))",
        Input.BATCH_RATE: f"avg by ({STAGE}) ({of_query} > 0) or {nothing}",
        Input.SLOTS: f"avg by ({STAGE}) ({slots})",
        Input.LARGEST_RATE: f"max by ({STAGE}) ({by_shard})",
        Input.MEDIAN_RATE: f"quantile by ({STAGE}) (0.5, {by_shard})",
        Input.STATE_BYTES: f"{state} or 0 * max by ({REGION}) ({slots})",
        Input.IDLE_SHARE: f"avg by ({STAGE}) ({idle} {of_owners})",
        Input.ELEMENTS: f"count by ({STAGE}) ({busy} {of_owners})",
    }


def _step(window_seconds: float, refresh_seconds: float) -> float:
    """Return how far apart the looks are that a slope is taken from.

    A whole number of scrapes is best: looks between two of them find nothing new, cost as much as
    the others, and make stairs of a slope. Refreshes are such a number apart, unless they are
    quicker than scrapes.
    """
    return max(0.5, min(max(refresh_seconds, window_seconds / 12), window_seconds / 4))


def _now(metric: str) -> str:
    """Return the value of each partition that its owner reports now."""
    return f"max by ({PARTITION}) ({metric}{_IN_REGIONS})"


def _last(metric: str, age: str) -> str:
    """Return the last value known of each partition, which may have no owner now."""
    return f"max by ({PARTITION}) (last_over_time({metric}{_IN_REGIONS}[{age}]))"


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
