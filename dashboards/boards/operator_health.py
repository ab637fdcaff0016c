"""The operator: who leads, how it keeps up, what it does."""

from dashboards.model import RATE, Dashboard, Panel, Query, quantiles, rate
from dashboards.replicas import replicas

_NOW = (
    Panel(
        "Leaders",
        "Replicas that hold the lease and have read everything: one.",
        "short",
        (Query("sum(streamgraft_operator_leading) or vector(0)", "leading"),),
        least=1,
        warn=2,
        number=True,
    ),
    replicas("streamgraft-operator"),
    Panel(
        "Failed reconciles",
        "Share of reconciles that failed and are retried.",
        "percentunit",
        (
            Query(
                f"sum({rate('streamgraft_operator_reconcile_errors_total', '')})"
                f" / sum({rate('streamgraft_operator_reconciles_total', '')})",
                "failed",
                quiet=True,
            ),
        ),
        warn=0.05,
        alarm=0.25,
        number=True,
    ),
    Panel(
        "Writes",
        "Writes to the API server.",
        "reqps",
        (Query(f"sum({rate('streamgraft_operator_api_writes_total', '')})", "writes"),),
        number=True,
    ),
)

_WORK = (
    Panel(
        "Reconciles",
        "By controller.",
        "ops",
        (
            Query(
                f"sum by (controller) ({rate('streamgraft_operator_reconciles_total', '')})",
                "{{controller}}",
            ),
        ),
    ),
    Panel(
        "Duration of reconciles, median and 95th percentile",
        "By controller.",
        "s",
        quantiles("streamgraft_operator_reconcile_duration_seconds", "controller", ""),
        warn=1,
        alarm=5,
    ),
    Panel(
        "Failed reconciles by controller",
        "They are retried.",
        "ops",
        (
            Query(
                f"sum by (controller) ({rate('streamgraft_operator_reconcile_errors_total', '')})",
                "{{controller}}",
                quiet=True,
            ),
        ),
        warn=0.1,
    ),
    Panel(
        "Writes to the API server",
        "By verb and kind.",
        "reqps",
        (
            Query(
                f"sum by (verb, kind) ({rate('streamgraft_operator_api_writes_total', '')})",
                "{{verb}} {{kind}}",
            ),
        ),
    ),
    Panel(
        "Pods launched",
        "New pods (cold), and pods taken from a warm pool.",
        "short",
        (
            Query(
                f"sum by (start) (increase(streamgraft_operator_launches_total[{RATE}]))",
                "{{start}}",
            ),
        ),
    ),
    Panel(
        "Changes of running graphs",
        "Processing elements in new generations of a job's graph, by what their change takes.",
        "short",
        (
            Query(
                f"sum by (change) (increase(streamgraft_operator_pe_changes_total[{RATE}]))",
                "{{change}}",
            ),
        ),
    ),
)

OPERATOR = Dashboard(
    "operator",
    "Streamgraft: operator",
    "Who leads, how it keeps up, what it does.",
    {"Now": _NOW, "Work": _WORK},
)
