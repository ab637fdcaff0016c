"""Processing elements, one by one."""

from dashboards.model import Dashboard, Panel, Query, quantiles, rate
from dashboards.variables import ELEMENT, IN_ELEMENT, JOB, NAMESPACE

_WORK = (
    Panel(
        "Rows read and written",
        "By processing element.",
        "cps",
        (
            Query(
                f"sum by (pe) ({rate('streamgraft_pe_input_rows_total', IN_ELEMENT)})", "{{pe}} in"
            ),
            Query(
                f"sum by (pe) ({rate('streamgraft_pe_output_rows_total', IN_ELEMENT)})",
                "{{pe}} out",
            ),
        ),
    ),
    Panel(
        "Batch duration, median and 95th percentile",
        "Micro-batches with data.",
        "s",
        quantiles("streamgraft_pe_batch_duration_seconds", "pe", IN_ELEMENT),
    ),
    Panel(
        "Utilization",
        "Busy share of the task slots.",
        "percentunit",
        (
            Query(
                f"sum by (pe) ({rate('streamgraft_pe_busy_seconds_total', IN_ELEMENT)})"
                f" / sum by (pe) (streamgraft_pe_slots{{{IN_ELEMENT}}})",
                "{{pe}}",
            ),
        ),
        warn=0.8,
        alarm=0.95,
    ),
    Panel(
        "Shards",
        "Shards that each processing element holds.",
        "short",
        (Query(f"sum by (pe) (streamgraft_pe_shards{{{IN_ELEMENT}}})", "{{pe}}"),),
    ),
    Panel(
        "State memory",
        "Memory of state, all shards.",
        "bytes",
        (Query(f"sum by (pe) (streamgraft_pe_state_bytes{{{IN_ELEMENT}}})", "{{pe}}"),),
    ),
    Panel(
        "Lag",
        "Records that wait before each.",
        "short",
        (Query(f"sum by (pe) (streamgraft_pe_lag_records{{{IN_ELEMENT}}})", "{{pe}}"),),
    ),
)

_TROUBLE = (
    Panel(
        "Failures",
        "Queries restarted after a failure, and shards not stopped at a batch boundary.",
        "short",
        (
            Query(
                f"sum by (pe) (streamgraft_pe_query_restarts_total{{{IN_ELEMENT}}})",
                "{{pe}} restarts",
            ),
            Query(
                f"sum by (pe) (streamgraft_pe_unclean_stops_total{{{IN_ELEMENT}}})",
                "{{pe}} unclean",
            ),
        ),
        warn=1,
        alarm=5,
    ),
    Panel(
        "Pods that Prometheus can't read",
        "Pods of processing elements that run but did not answer the last scrape.",
        "short",
        (
            Query(
                'count by (namespace, streams_job) (up{job="streamgraft-pe",'
                ' namespace=~"$namespace", streams_job=~"$job"} == 0)',
                "{{namespace}}/{{streams_job}}",
                quiet=True,
            ),
        ),
        warn=1,
    ),
)

ELEMENTS = Dashboard(
    "elements",
    "Streamgraft: processing elements",
    "Work, state and failures of each processing element.",
    {"Work": _WORK, "Trouble": _TROUBLE},
    (NAMESPACE, JOB, ELEMENT),
)
