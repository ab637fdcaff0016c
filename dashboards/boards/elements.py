"""Processing elements, one by one."""

from dashboards.identity import BY_ELEMENT, BY_JOB, legend
from dashboards.model import RATE, Dashboard, Panel, Query, quantiles, rate
from dashboards.variables import ELEMENT, IN_ELEMENT, IN_JOB, JOB, NAMESPACE

_LEGEND = legend(BY_ELEMENT)


def _grown(metric: str) -> str:
    return f"sum by ({BY_ELEMENT}) (increase({metric}{{{IN_ELEMENT}}}[{RATE}]))"


_WORK = (
    Panel(
        "Rows read and written",
        "By processing element.",
        "cps",
        (
            Query(
                f"sum by ({BY_ELEMENT}) ({rate('streamgraft_pe_input_rows_total', IN_ELEMENT)})",
                f"{_LEGEND} in",
            ),
            Query(
                f"sum by ({BY_ELEMENT}) ({rate('streamgraft_pe_output_rows_total', IN_ELEMENT)})",
                f"{_LEGEND} out",
            ),
        ),
    ),
    Panel(
        "Batch duration, median and 95th percentile",
        "Micro-batches with data.",
        "s",
        quantiles("streamgraft_pe_batch_duration_seconds", BY_ELEMENT, IN_ELEMENT),
    ),
    Panel(
        "Utilization",
        "Busy share of the task slots.",
        "percentunit",
        (
            Query(
                f"sum by ({BY_ELEMENT}) ({rate('streamgraft_pe_busy_seconds_total', IN_ELEMENT)})"
                f" / sum by ({BY_ELEMENT}) (streamgraft_pe_slots{{{IN_ELEMENT}}})",
                _LEGEND,
            ),
        ),
        warn=0.8,
        alarm=0.95,
    ),
    Panel(
        "Shards",
        "Shards that each processing element holds.",
        "short",
        (Query(f"sum by ({BY_ELEMENT}) (streamgraft_pe_shards{{{IN_ELEMENT}}})", _LEGEND),),
    ),
    Panel(
        "State memory",
        "Memory of state, all shards.",
        "bytes",
        (Query(f"sum by ({BY_ELEMENT}) (streamgraft_pe_state_bytes{{{IN_ELEMENT}}})", _LEGEND),),
    ),
    Panel(
        "Lag",
        "Records that wait before each.",
        "short",
        (Query(f"sum by ({BY_ELEMENT}) (streamgraft_pe_lag_records{{{IN_ELEMENT}}})", _LEGEND),),
    ),
)

_TROUBLE = (
    Panel(
        "Failures",
        "Queries restarted after a failure, and shards not stopped at a batch boundary, when they"
        " were.",
        "short",
        (
            Query(_grown("streamgraft_pe_query_restarts_total"), f"{_LEGEND} restarts"),
            Query(_grown("streamgraft_pe_unclean_stops_total"), f"{_LEGEND} unclean"),
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
                f'count by ({BY_JOB}) (up{{job="streamgraft-pe", {IN_JOB}}} == 0)',
                legend(BY_JOB),
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
