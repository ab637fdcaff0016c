"""Parallel regions: width, rates, lag, utilization, state.

A partition's series changes with its owner, so what belongs to a partition is taken per partition
first (`max by`), then summed. A region that sleeps has no PEs: of it there is only what the
operator exports, lag and offsets.

Offsets are gauges that step back after a crash or a rollback, so their slope is taken: rate() would
take a step back for a counter that began anew, and add the whole log.
"""

from dashboards.identity import BY_REGION, channels, legend
from dashboards.model import RATE, Dashboard, Panel, Query, rate
from dashboards.variables import IN_REGION, JOB, NAMESPACE, REGION

_LEGEND = legend(BY_REGION)
_BY_PARTITION = f"{BY_REGION}, stage, topic, partition"
_PARTITION = f"{_LEGEND} stage {{{{stage}}}} {legend('topic, partition')}"


_FIRST_STAGE = 'stage=~"0|"'
"""Of a region without PEs the label may be missing."""


def _owned(metric: str, where: str = IN_REGION) -> str:
    return f"max by ({_BY_PARTITION}) ({metric}{{{where}}})"


def _slope(metric: str) -> str:
    """Return how fast offsets grow at the first stage: later stages have the same records again."""
    owned = _owned(metric, f"{IN_REGION}, {_FIRST_STAGE}")
    return f"sum by ({BY_REGION}) (deriv(({owned})[{RATE}:10s]))"


def _channels(condition: str) -> str:
    """Return the query that counts channels by region: 0 for a region that sleeps."""
    none = f"0 * count by ({BY_REGION}) (streamgraft_pe_lag_records{{{IN_REGION}}})"
    return f"{channels(condition)} or {none}"


def _handed_over(part: str) -> str:
    metric = f"streamgraft_pe_handover_seconds_{part}"
    return f"sum by ({BY_REGION}, phase) ({metric}{{{IN_REGION}}})"


_LOAD = (
    Panel(
        "Channels",
        "Channels that hold shards, and channels whose pods run: 0 while a region sleeps.",
        "short",
        (
            Query(_channels(f"streamgraft_pe_shards{{{IN_REGION}}} > 0"), f"{_LEGEND} serve"),
            Query(_channels(f"streamgraft_pe_slots{{{IN_REGION}}}"), f"{_LEGEND} run"),
        ),
        leads_to="streamgraft-decisions",
    ),
    Panel(
        "Records arriving and processed",
        "How fast logs' ends and committed positions grow, at the region's first stage. Positions"
        " that step back, as after a crash, show as a dip.",
        "cps",
        (
            Query(_slope("streamgraft_pe_input_end_offset"), f"{_LEGEND} arriving"),
            Query(_slope("streamgraft_pe_committed_offset"), f"{_LEGEND} processed"),
        ),
    ),
    Panel(
        "Lag",
        "Records that wait before the region (the paper's total lag, Eq. 2).",
        "short",
        (Query(f"sum by ({BY_REGION}) ({_owned('streamgraft_pe_lag_records')})", _LEGEND),),
    ),
    Panel(
        "Lag by key group",
        "One line per stage, topic and partition: a skewed key shows here.",
        "short",
        (Query(_owned("streamgraft_pe_lag_records"), _PARTITION),),
    ),
    Panel(
        "Utilization",
        "Busy share of the task slots of all channels (the paper's Eq. 5). A region that sleeps has"
        " none, and no utilization.",
        "percentunit",
        (
            Query(
                f"sum by ({BY_REGION}) ({rate('streamgraft_pe_busy_seconds_total', IN_REGION)})"
                f" / sum by ({BY_REGION}) (streamgraft_pe_slots{{{IN_REGION}}})",
                _LEGEND,
            ),
            Query(
                f"{rate('streamgraft_pe_busy_seconds_total', IN_REGION)}"
                f" / on (namespace, pod) group_left streamgraft_pe_slots{{{IN_REGION}}}",
                f"{_LEGEND} channel {{{{channel}}}} stage {{{{stage}}}}",
            ),
        ),
        warn=0.8,
        alarm=0.95,
    ),
    Panel(
        "Hand-over of shards, mean",
        "How long a shard takes to stop with its old owner and to start with its new one.",
        "s",
        (
            Query(
                f"{_handed_over('sum')} / ({_handed_over('count')} > 0)",
                f"{_LEGEND} {{{{phase}}}}",
            ),
        ),
        warn=1,
        alarm=5,
    ),
)

_STATE = (
    Panel(
        "State",
        "Rows of state, all shards. That of a region that sleeps is in its checkpoints.",
        "short",
        (
            Query(
                f"sum by ({BY_REGION}) (streamgraft_pe_state_rows{{{IN_REGION}}})",
                f"{_LEGEND} rows",
            ),
        ),
    ),
    Panel(
        "State memory",
        "Memory of state, all shards. A region that sleeps needs none.",
        "bytes",
        (Query(f"sum by ({BY_REGION}) (streamgraft_pe_state_bytes{{{IN_REGION}}})", _LEGEND),),
    ),
)

REGIONS = Dashboard(
    "regions",
    "Streamgraft: parallel regions",
    "Width, rates, lag, utilization and state of parallel regions.",
    {"Load and width": _LOAD, "State": _STATE},
    (NAMESPACE, JOB, REGION),
)
