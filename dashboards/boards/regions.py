"""Parallel regions: width, rates, lag, utilization, state.

A partition's series changes with its owner, so what belongs to a partition is taken per partition
first (`max by`), then summed. A region that sleeps has no PEs: of it there is only what the
operator exports, lag and offsets.
"""

from dashboards.model import Dashboard, Panel, Query, rate
from dashboards.variables import IN_REGION, JOB, NAMESPACE, REGION


def _owned(metric: str) -> str:
    return f"max by (region, topic, partition) ({metric}{{{IN_REGION}}})"


def _channels(condition: str) -> str:
    """Return the query that counts channels by region: 0 for a region that sleeps."""
    none = f"0 * count by (region) (streamgraft_pe_lag_records{{{IN_REGION}}})"
    return f"count by (region) ({condition}) or {none}"


_LOAD = (
    Panel(
        "Channels",
        "Channels that hold shards, and channels whose pods run: 0 while a region sleeps.",
        "short",
        (
            Query(_channels(f"streamgraft_pe_shards{{{IN_REGION}}} > 0"), "{{region}} serve"),
            Query(_channels(f"streamgraft_pe_slots{{{IN_REGION}}}"), "{{region}} run"),
        ),
        leads_to="streamgraft-decisions",
    ),
    Panel(
        "Records arriving and processed",
        "Rate of the logs' ends against the rate of committed positions.",
        "cps",
        tuple(
            Query(
                f"sum by (region) (rate(({_owned(metric)})[$__rate_interval:10s]))",
                f"{{{{region}}}} {legend}",
            )
            for metric, legend in (
                ("streamgraft_pe_input_end_offset", "arriving"),
                ("streamgraft_pe_committed_offset", "processed"),
            )
        ),
    ),
    Panel(
        "Lag",
        "Records that wait before the region (the paper's total lag, Eq. 2).",
        "short",
        (Query(f"sum by (region) ({_owned('streamgraft_pe_lag_records')})", "{{region}}"),),
    ),
    Panel(
        "Lag by key group",
        "One line per partition: a skewed key shows here.",
        "short",
        (Query(_owned("streamgraft_pe_lag_records"), "{{region}} {{partition}}"),),
    ),
    Panel(
        "Utilization",
        "Busy share of the task slots of all channels (the paper's Eq. 5). A region that sleeps has"
        " none, and no utilization.",
        "percentunit",
        (
            Query(
                f"sum by (region) ({rate('streamgraft_pe_busy_seconds_total', IN_REGION)})"
                f" / sum by (region) (streamgraft_pe_slots{{{IN_REGION}}})",
                "{{region}}",
            ),
            Query(
                f"{rate('streamgraft_pe_busy_seconds_total', IN_REGION)}"
                f" / on (namespace, pod) group_left streamgraft_pe_slots{{{IN_REGION}}}",
                "{{region}} channel {{channel}}",
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
                f"sum by (phase) (streamgraft_pe_handover_seconds_sum{{{IN_REGION}}})"
                f" / (sum by (phase) (streamgraft_pe_handover_seconds_count{{{IN_REGION}}}) > 0)",
                "{{phase}}",
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
        (Query(f"sum by (region) (streamgraft_pe_state_rows{{{IN_REGION}}})", "{{region}} rows"),),
    ),
    Panel(
        "State memory",
        "Memory of state, all shards. A region that sleeps needs none.",
        "bytes",
        (Query(f"sum by (region) (streamgraft_pe_state_bytes{{{IN_REGION}}})", "{{region}}"),),
    ),
)

REGIONS = Dashboard(
    "regions",
    "Streamgraft: parallel regions",
    "Width, rates, lag, utilization and state of parallel regions.",
    {"Load and width": _LOAD, "State": _STATE},
    (NAMESPACE, JOB, REGION),
)
