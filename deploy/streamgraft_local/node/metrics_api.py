"""metrics.k8s.io, as metrics-server serves it: what `kubectl top` and Resource HPAs read.

Only the API server may ask (its front proxy's certificate); it has checked the user's rights then.
Which pods match a selector is asked of the API server, so that selectors mean what they do there.
"""

import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from streamgraft_common.kube import ApiError, KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_local.node.states import now
from streamgraft_local.node.usage import Usage

_VERSION = "metrics.k8s.io/v1beta1"
_BASE = f"/apis/{_VERSION}"
_KINDS = (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True))
_SELECTORS = ("labelSelector", "fieldSelector")


@dataclass(frozen=True)
class MetricsEndpoint:
    """Where to listen, and whom to answer (PEM files)."""

    port: int
    certificate: Path
    key: Path
    client_authority: Path

    def context(self) -> ssl.SSLContext:
        """Return TLS settings of the server: clients need a certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.certificate, self.key)
        return context


Measured = Callable[[Object], dict[str, Usage]]
"""A pod's containers that were measured, by name."""


class MetricsApi:
    """Serves what one node measures."""

    def __init__(
        self, client: KubeClient, node: str, measured: Measured, machine: Callable[[], Usage | None]
    ) -> None:
        self._client = client
        self._node = node
        self._measured = measured
        self._machine = machine
        app = web.Application(middlewares=[_statuses])
        router = app.router
        router.add_get(_BASE, _resources)
        router.add_get(f"{_BASE}/pods", self._pods)
        router.add_get(f"{_BASE}/namespaces/{{namespace}}/pods", self._pods)
        router.add_get(f"{_BASE}/namespaces/{{namespace}}/pods/{{name}}", self._pod)
        router.add_get(f"{_BASE}/nodes", self._nodes)
        router.add_get(f"{_BASE}/nodes/{{name}}", self._one_node)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, endpoint: MetricsEndpoint) -> None:
        """Listen on the loopback address. Raises OSError if the port is taken."""
        await self._runner.setup()
        context = endpoint.context()
        await web.TCPSite(self._runner, "127.0.0.1", endpoint.port, ssl_context=context).start()

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _pods(self, request: web.Request) -> web.Response:
        namespace = request.match_info.get("namespace")
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        here = f"spec.nodeName={self._node}"
        asked = _asked(request)
        asked["fieldSelector"] = ",".join(filter(None, [here, asked.get("fieldSelector")]))
        found = await self._client.list(path, asked, metadata_only=True)
        items = (pod_metrics(pod, self._measured(pod)) for pod in found["items"])
        return _list("PodMetrics", filter(None, items))

    async def _pod(self, request: web.Request) -> web.Response:
        namespace, name = (request.match_info[key] for key in ("namespace", "name"))
        pod = await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        return _one(pod_metrics(pod, self._measured(pod)), f"pod {namespace}/{name}")

    async def _nodes(self, request: web.Request) -> web.Response:
        found = await self._client.list("/api/v1/nodes", _asked(request), metadata_only=True)
        ours = (item for item in found["items"] if item["metadata"]["name"] == self._node)
        items = (node_metrics(item, self._machine()) for item in ours)
        return _list("NodeMetrics", filter(None, items))

    async def _one_node(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        node = await self._client.get(f"/api/v1/nodes/{name}")
        machine = self._machine() if name == self._node else None
        return _one(node_metrics(node, machine), f"node {name}")


def pod_metrics(pod: Object, containers: dict[str, Usage]) -> Object | None:
    """Return a PodMetrics; None if no container was measured."""
    if not containers:
        return None
    shown = [{"name": name, "usage": used.as_api()} for name, used in containers.items()]
    oldest = min(containers.values(), key=lambda used: used.at)
    return _metrics("PodMetrics", pod, oldest) | {"containers": shown}


def node_metrics(node: Object, machine: Usage | None) -> Object | None:
    """Return a NodeMetrics; None if the machine was not measured."""
    if machine is None:
        return None
    return _metrics("NodeMetrics", node, machine) | {"usage": machine.as_api()}


def _metrics(kind: str, measured: Object, used: Usage) -> Object:
    names = ("name", "namespace", "labels")
    metadata = {key: measured["metadata"][key] for key in names if key in measured["metadata"]}
    return {
        "kind": kind,
        "apiVersion": _VERSION,
        "metadata": metadata | {"creationTimestamp": now()},
        "timestamp": to_rfc3339(used.at, "seconds"),
        "window": f"{used.window_seconds:.3f}s",
    }


async def _resources(_request: web.Request) -> web.Response:
    resources = [
        {
            "name": name,
            "singularName": "",
            "namespaced": namespaced,
            "kind": kind,
            "verbs": ["get", "list"],
        }
        for name, kind, namespaced in _KINDS
    ]
    found = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": _VERSION}
    return web.json_response(found | {"resources": resources})


def _asked(request: web.Request) -> dict[str, str]:
    return {key: request.query[key] for key in _SELECTORS if request.query.get(key)}


def _list(kind: str, items: Iterable[Any]) -> web.Response:
    found = {"kind": f"{kind}List", "apiVersion": _VERSION, "metadata": {}, "items": list(items)}
    return web.json_response(found)


def _one(found: Object | None, what: str) -> web.Response:
    if found is None:
        raise ApiError(404, "NotFound", f"{what} was not measured yet, or not on this node")
    return web.json_response(found)


@web.middleware
async def _statuses(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer with a Status where the API server refused what was asked of it."""
    try:
        answer: web.StreamResponse = await handler(request)
    except ApiError as error:
        status: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        status |= {"code": error.code, "reason": error.reason, "message": error.message}
        return web.json_response(status, status=error.code)
    return answer
