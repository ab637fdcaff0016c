"""What the operator tells Prometheus about itself and its health endpoint."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

REGISTRY = CollectorRegistry()

RECONCILES = Counter(
    "streamgraft_operator_reconciles",
    "Reconciles finished, by controller.",
    ["controller"],
    registry=REGISTRY,
)
RECONCILE_ERRORS = Counter(
    "streamgraft_operator_reconcile_errors",
    "Reconciles that failed and are retried, by controller.",
    ["controller"],
    registry=REGISTRY,
)
RECONCILE_SECONDS = Histogram(
    "streamgraft_operator_reconcile_duration_seconds",
    "Duration of one reconcile.",
    ["controller"],
    registry=REGISTRY,
)
API_WRITES = Counter(
    "streamgraft_operator_api_writes",
    "Writes to the API server.",
    ["verb", "kind"],
    registry=REGISTRY,
)
WIDTH_CHANGES = Counter(
    "streamgraft_operator_width_changes",
    "Width changes begun.",
    ["namespace", "streams_job", "region"],
    registry=REGISTRY,
)
ROLLBACKS = Counter(
    "streamgraft_operator_rollbacks",
    "Width changes that were not healthy in time and were taken back.",
    ["namespace", "streams_job", "region"],
    registry=REGISTRY,
)
PE_CHANGES = Counter(
    "streamgraft_operator_pe_changes",
    "PEs in new generations of a job's graph, by what their change takes.",
    ["change"],
    registry=REGISTRY,
)
LAUNCHES = Counter(
    "streamgraft_operator_launches",
    "Pods of PEs that were launched: new ones (cold), or taken from a warm pool.",
    ["start"],
    registry=REGISTRY,
)
PE_FAILURES = Counter(
    "streamgraft_operator_pe_failures",
    "Pods of a processing element that failed.",
    ["namespace", "streams_job", "pe"],
    registry=REGISTRY,
)


LEADING = Gauge(
    "streamgraft_operator_leading",
    "1 while this replica holds the lease, has read everything and writes, else 0.",
    registry=REGISTRY,
)


async def _metrics(_: web.Request) -> web.Response:
    headers = {"Content-Type": CONTENT_TYPE_LATEST}
    return web.Response(body=generate_latest(REGISTRY), headers=headers)


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok")


@asynccontextmanager
async def served(address: str, port: int) -> AsyncIterator[None]:
    """Serve `/metrics` and `/healthz`; at all addresses, of IPv4 and of IPv6, if it is empty."""
    app = web.Application()
    app.add_routes([web.get("/metrics", _metrics), web.get("/healthz", _healthz)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield
    finally:
        await runner.cleanup()
