"""The part of the kubelet's HTTPS API that `kubectl logs` needs, by way of the API server.

It listens on the node's loopback address only, which all users of the machine reach: it answers
nobody but the API server.
"""

from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from streamgraft_local.node import log_files
from streamgraft_local.node.certificate import server_context

PORT = 10250
"""The kubelet's; the node has an address of its own."""

FindContainer = Callable[[str, str, str], tuple[Path, Callable[[], bool]] | None]
"""(namespace, pod, container) → its folder, and whether it may still write; None if unknown."""


class KubeletApi:
    """Serves container logs to clients with a certificate of the authority `clients`."""

    def __init__(self, find: FindContainer, clients: Path) -> None:
        self._find, self._clients = find, clients
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        app.router.add_route("*", "/{other:.*}", self._unsupported)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, address: str) -> None:
        """Listen. Raises OSError if the address is taken."""
        await self._runner.setup()
        context = server_context(address, self._clients)
        site = web.TCPSite(self._runner, address, PORT, ssl_context=context)
        await site.start()

    async def close(self) -> None:
        """Stop listening; ends running requests."""
        await self._runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _unsupported(self, request: web.Request) -> web.Response:
        return web.Response(status=501, text=f"the process node does not serve {request.path}\n")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        names = [request.match_info[key] for key in ("namespace", "pod", "container")]
        if any(query.get(key) for key in ("sinceSeconds", "sinceTime", "timestamps")):
            return web.Response(status=400, text="the process node keeps no times of log lines\n")
        found = self._find(*names)
        path = (
            log_files.log_path(found[0], previous=query.get("previous") == "true")
            if found
            else None
        )
        if found is None or path is None:
            return web.Response(status=404, text=f"no log of container {'/'.join(names)}\n")
        lines, limit = query.get("tailLines"), int(query.get("limitBytes", 0))
        offset = log_files.tail_offset(path, int(lines)) if lines else 0
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        follow = found[1] if query.get("follow") == "true" else None
        sent = 0
        async for block in log_files.read(path, offset, follow):
            part = block[: limit - sent] if limit else block
            await response.write(part)
            sent += len(part)
            if limit and sent >= limit:
                break
        return response
