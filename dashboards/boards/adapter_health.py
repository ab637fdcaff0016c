"""The metrics adapter: without it every HPA holds its width."""

from dashboards.model import Dashboard, Panel, Query, quantile, quantiles, rate
from dashboards.replicas import replicas

_NOW = (
    replicas("streamgraft-metrics-adapter"),
    Panel(
        "Age of the signals",
        "Time since signals were last read from Prometheus, of the replica that is behind most.",
        "s",
        (Query("time() - min(streamgraft_adapter_last_refresh_timestamp_seconds)", "age"),),
        warn=60,
        alarm=120,
        number=True,
    ),
    Panel(
        "Failed queries",
        "Queries that Prometheus did not answer.",
        "ops",
        (
            Query(
                f"sum({rate('streamgraft_adapter_prometheus_query_errors_total', '')})"
                " or vector(0)",
                "failed",
            ),
        ),
        alarm=0.001,
        number=True,
    ),
    Panel(
        "Certificate ends in",
        "The one that it serves with.",
        "s",
        (
            Query(
                "min(streamgraft_adapter_certificate_expiry_timestamp_seconds) - time()", "ends in"
            ),
        ),
        warn=30 * 86400,
        alarm=7 * 86400,
        falls=True,
        number=True,
    ),
)

_WORK = (
    Panel(
        "Requests",
        "By what was asked for and the answer's code.",
        "reqps",
        (
            Query(
                "sum by (route, code)"
                f" ({rate('streamgraft_adapter_request_duration_seconds_count', '')})",
                "{{route}} {{code}}",
            ),
        ),
    ),
    Panel(
        "Duration of requests, median and 95th percentile",
        "Authentication and authorization included; live views, which last for minutes, are not.",
        "s",
        quantiles("streamgraft_adapter_request_duration_seconds", "route", 'route!="stream"'),
        warn=0.5,
        alarm=2,
    ),
    Panel(
        "Duration of a refresh, 95th percentile",
        "Reading all inputs of the signals from Prometheus.",
        "s",
        (
            Query(
                quantile(0.95, "streamgraft_adapter_refresh_duration_seconds", "instance", ""),
                "{{instance}}",
            ),
        ),
        warn=2,
        alarm=5,
    ),
    Panel(
        "Age of metrics when served, 95th percentile",
        "By group of the API.",
        "s",
        (
            Query(
                quantile(0.95, "metrics_apiserver_metric_freshness_seconds", "group", ""),
                "{{group}}",
                quiet=True,
            ),
        ),
        warn=30,
        alarm=60,
    ),
    Panel(
        "Queries to Prometheus",
        "By query.",
        "reqps",
        (
            Query(
                f"sum by (query) ({rate('streamgraft_adapter_prometheus_queries_total', '')})",
                "{{query}}",
            ),
        ),
    ),
)

_TROUBLE = (
    Panel(
        "Signals asked for without a value",
        "By metric and reason. docs/operate/runbook.md.",
        "ops",
        (
            Query(
                "sum by (metric, reason)"
                f" ({rate('streamgraft_adapter_unavailable_signals_total', '')})",
                "{{metric}} {{reason}}",
                quiet=True,
            ),
        ),
        warn=0.1,
    ),
    Panel(
        "Refused requests",
        "Because of their size, number or duration.",
        "reqps",
        (
            Query(
                f"sum by (reason) ({rate('streamgraft_adapter_refused_requests_total', '')})",
                "{{reason}}",
                quiet=True,
            ),
        ),
        warn=0.1,
    ),
    Panel(
        "Unexpected errors",
        "Errors that nothing was prepared for; the part that failed goes on.",
        "ops",
        (
            Query(
                f"sum by (part) ({rate('streamgraft_adapter_unexpected_errors_total', '')})",
                "{{part}}",
                quiet=True,
            ),
        ),
        alarm=0.001,
    ),
    Panel(
        "Configuration of metrics is the one on disk",
        "0: the file is bad, and the last good one stays.",
        "bool",
        (Query("min by (instance) (streamgraft_adapter_configuration_valid)", "{{instance}}"),),
        alarm=1,
        falls=True,
    ),
)

ADAPTER = Dashboard(
    "adapter",
    "Streamgraft: metrics adapter",
    "Without it every HPA holds its width.",
    {"Now": _NOW, "Work": _WORK, "Trouble": _TROUBLE},
)
