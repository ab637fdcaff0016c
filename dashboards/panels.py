"""The panels of the Grafana dashboard: titles and queries, no layout.

Every query stands on docs/develop/contracts.md, "Metrics of a PE". A partition's series changes
with its owner, so what belongs to a partition is taken per partition first (`max by`), then summed.
A region that sleeps has no PEs: of it there is only what the operator exports, lag and offsets.
"""

from dataclasses import dataclass

REGION = 'namespace="$namespace", streams_job="$job", region=~"$region"'
JOB = 'namespace="$namespace", streams_job="$job"'


@dataclass(frozen=True)
class Query:
    """One query and the text of its legend."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One time series panel; `unit` is one of Grafana's unit ids."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]


def _owned(metric: str) -> str:
    return f"max by (region, topic, partition) ({metric}{{{REGION}}})"


def _channels(condition: str) -> str:
    """Return the query that counts channels by region: 0 for a region that sleeps."""
    none = f"0 * count by (region) (streamgraft_pe_lag_records{{{REGION}}})"
    return f"count by (region) ({condition}) or {none}"


def _quantile(share: float, metric: str, labels: str, where: str) -> str:
    rate = f"rate({metric}_bucket{{{where}}}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by ({labels}, le) ({rate}))"


def _rate(metric: str, where: str) -> str:
    return f"rate({metric}{{{where}}}[$__rate_interval])"


REGIONS = (
    Panel(
        "Channels",
        "Channels that hold shards, and channels whose pods run: 0 while a region sleeps.",
        "short",
        (
            Query(_channels(f"streamgraft_pe_shards{{{REGION}}} > 0"), "{{region}} serve"),
            Query(_channels(f"streamgraft_pe_slots{{{REGION}}}"), "{{region}} run"),
        ),
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
                f"sum by (region) ({_rate('streamgraft_pe_busy_seconds_total', REGION)})"
                f" / sum by (region) (streamgraft_pe_slots{{{REGION}}})",
                "{{region}}",
            ),
            Query(
                f"{_rate('streamgraft_pe_busy_seconds_total', REGION)}"
                f" / on (pod) group_left streamgraft_pe_slots{{{REGION}}}",
                "{{region}} channel {{channel}}",
            ),
        ),
    ),
    Panel(
        "Hand-over of shards, mean",
        "How long a shard takes to stop with its old owner and to start with its new one.",
        "s",
        (
            Query(
                f"sum by (phase) (streamgraft_pe_handover_seconds_sum{{{REGION}}})"
                f" / (sum by (phase) (streamgraft_pe_handover_seconds_count{{{REGION}}}) > 0)",
                "{{phase}}",
            ),
        ),
    ),
    Panel(
        "State",
        "Rows of state, all shards. That of a region that sleeps is in its checkpoints.",
        "short",
        (Query(f"sum by (region) (streamgraft_pe_state_rows{{{REGION}}})", "{{region}} rows"),),
    ),
    Panel(
        "State memory",
        "Memory of state, all shards. A region that sleeps needs none.",
        "bytes",
        (Query(f"sum by (region) (streamgraft_pe_state_bytes{{{REGION}}})", "{{region}}"),),
    ),
)

JOBS = (
    Panel(
        "Rows read and written",
        "By processing element.",
        "cps",
        (
            Query(f"sum by (pe) ({_rate('streamgraft_pe_input_rows_total', JOB)})", "{{pe}} in"),
            Query(f"sum by (pe) ({_rate('streamgraft_pe_output_rows_total', JOB)})", "{{pe}} out"),
        ),
    ),
    Panel(
        "Batch duration, median and 95th percentile",
        "Micro-batches with data, by processing element.",
        "s",
        tuple(
            Query(
                _quantile(share, "streamgraft_pe_batch_duration_seconds", "pe", JOB),
                f"{{{{pe}}}} {share:.0%}",
            )
            for share in (0.5, 0.95)
        ),
    ),
    Panel(
        "Shards",
        "Shards that each processing element holds.",
        "short",
        (Query(f"sum by (pe) (streamgraft_pe_shards{{{JOB}}})", "{{pe}}"),),
    ),
    Panel(
        "Failures",
        "Queries restarted after a failure, and shards not stopped at a batch boundary.",
        "short",
        (
            Query(f"sum by (pe) (streamgraft_pe_query_restarts_total{{{JOB}}})", "{{pe}} restarts"),
            Query(f"sum by (pe) (streamgraft_pe_unclean_stops_total{{{JOB}}})", "{{pe}} unclean"),
        ),
    ),
)
