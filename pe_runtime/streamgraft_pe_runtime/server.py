"""The control port's HTTP server: /healthz, /readyz, /metrics and /status."""

from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLContext

from aiohttp import web

from streamgraft_common.resources import RuntimeStatus
from streamgraft_pe_runtime.metrics import PeMetrics


@dataclass(frozen=True)
class Probes:
    """What the server asks the PE."""

    alive: Callable[[], bool]
    ready: Callable[[], bool]
    status: Callable[[], RuntimeStatus]


async def serve(
    address: str, port: int, probes: Probes, metrics: PeMetrics, tls: SSLContext | None
) -> web.AppRunner:
    """Start the server, with https if there is `tls`; `cleanup()` of what is returned ends it."""

    async def healthz(request: web.Request) -> web.Response:
        return _probe(probes.alive(), "the driver's JVM ended")

    async def readyz(request: web.Request) -> web.Response:
        return _probe(probes.ready(), "warming up")

    async def exposition(request: web.Request) -> web.Response:
        content_type = "text/plain; version=0.0.4; charset=utf-8"
        return web.Response(body=metrics.exposition(), headers={"Content-Type": content_type})

    async def status(request: web.Request) -> web.Response:
        return web.json_response(probes.status().to_wire())

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/metrics", exposition)
    application.router.add_get("/status", status)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port, ssl_context=tls).start()
    return runner


def _probe(good: bool, otherwise: str) -> web.Response:
    return web.Response(text="ok") if good else web.Response(status=503, text=otherwise)
