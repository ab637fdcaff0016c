"""What the adapter says about itself, at /metrics."""

from prometheus_client import Counter, Gauge, Histogram

REQUEST_SECONDS = Histogram(
    "streamgraft_adapter_request_duration_seconds",
    "Time to answer a request, authentication and authorization included",
    ["route", "code"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
REFRESH_SECONDS = Histogram(
    "streamgraft_adapter_refresh_duration_seconds",
    "Time to read all inputs of the signals from Prometheus",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
REFRESH_TIME = Gauge(
    "streamgraft_adapter_last_refresh_timestamp_seconds", "Time of the last refresh that succeeded"
)
QUERIES = Counter(
    "streamgraft_adapter_prometheus_queries_total", "Queries sent to Prometheus", ["query"]
)
QUERY_ERRORS = Counter(
    "streamgraft_adapter_prometheus_query_errors_total", "Queries without an answer", ["query"]
)
UNEXPECTED_ERRORS = Counter(
    "streamgraft_adapter_unexpected_errors_total",
    "Errors that nothing was prepared for; the part that failed goes on",
    ["part"],
)
SIGNAL_ERRORS = Counter(
    "streamgraft_adapter_unavailable_signals_total",
    "Signals asked for that had no value",
    ["metric", "reason"],
)
REFUSED = Counter(
    "streamgraft_adapter_refused_requests_total",
    "Requests refused because of their size, number or duration",
    ["reason"],
)
CERTIFICATE_EXPIRY = Gauge(
    "streamgraft_adapter_certificate_expiry_timestamp_seconds",
    "When the serving certificate ends",
)
CONFIGURATION_VALID = Gauge(
    "streamgraft_adapter_configuration_valid",
    "1 if the configuration of metrics on disk is the one that is served",
)
FRESHNESS_SECONDS = Histogram(
    "metrics_apiserver_metric_freshness_seconds",
    "Age of a metric when it is served",
    ["group"],
    buckets=[1.364**exponent for exponent in range(20)],
)
