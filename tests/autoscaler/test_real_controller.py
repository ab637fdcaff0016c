"""The HPA library against the real controller: the same readings, look by look.

A control plane of its own (etcd, API server, controller manager); the metrics API is this test,
so it knows what the controller read, and when.
"""

import asyncio
import copy
import itertools
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.control_plane import api_server
from tests.serving import serving

from streamgraft_autoscaler.hpa import HorizontalPodAutoscaler, Scale, spec_of
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import resources
from streamgraft_local.components import controlplane
from streamgraft_local.components.model import Setting

pytestmark = pytest.mark.integration

SYNC_SECONDS = 6
"""The edges of all windows, and of the 15 s of Kubernetes' own, lie amid two looks: which of them
are within a window does not depend on how fast the machine is."""
SLACK_SECONDS = 2.7
"""The controller takes its own time a little after it read the metric."""
LOOKS = 16
DEADLINE_SECONDS = 240.0
MAX_WIDTH = 40
REGIONS = "/apis/streamgraft.io/v1alpha1/namespaces/default/parallelregions"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def rules(seconds: int, *policies: tuple[str, int, int], **more: Any) -> dict[str, Any]:
    """Return one direction of a behavior; policies are (type, value, period)."""
    listed = [{"type": kind, "value": value, "periodSeconds": p} for kind, value, p in policies]
    return {"stabilizationWindowSeconds": seconds, "policies": listed, **more}


AT_ONCE = rules(0, ("Pods", 100, 15))
DROP = rules(0, ("Percent", 100, 15))
DOZE = [2.0, 0.0, 0.0, 0.4, 3.0, 1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.001, 2.0, 0.0, 0.0, 1.0]
WAVE = [4.0, 4.3, 5.0, 9.0, 9.5, 3.0, 2.0, 8.0, 12.0, 12.9, 6.0, 1.0, 1.0, 1.0, 20.0, 7.0]
RATIO = [1.05, 1.3, 2.0, 0.95, 0.5, 0.3, 1.11, 0.89, 1.6, -1.0, 0.0, 1.0, 3.0, 0.7, 0.2, 1.2]


@dataclass(frozen=True)
class Case:
    """One HPA: its target, its behavior, what it reads, and the pods: all, and the ready ones."""

    target: Mapping[str, str]
    behavior: Mapping[str, Any] | None
    values: list[float]
    pods: int = 0
    ready: int = 0
    minimum: int = 1
    maximum: int = 30


WIDTH = {"type": "AverageValue", "averageValue": "1"}
SHARE = {"type": "Value", "value": "1"}
CASES = {
    "at-once": Case(WIDTH, {"scaleUp": AT_ONCE, "scaleDown": DROP}, WAVE),
    "default": Case(WIDTH, None, WAVE),
    "bounded": Case(WIDTH, {"scaleUp": AT_ONCE, "scaleDown": DROP}, WAVE, minimum=3, maximum=8),
    "stable": Case(
        WIDTH,
        {"scaleUp": rules(9, ("Pods", 100, 15)), "scaleDown": rules(21, ("Percent", 100, 15))},
        WAVE,
    ),
    "slow": Case(
        WIDTH,
        {
            "scaleUp": rules(0, ("Pods", 2, 15), ("Percent", 50, 9)),
            "scaleDown": rules(0, ("Pods", 1, 9), ("Percent", 30, 15), selectPolicy="Min"),
        },
        WAVE,
    ),
    "tolerant": Case(WIDTH, {"scaleUp": {**AT_ONCE, "tolerance": "0.5"}, "scaleDown": DROP}, WAVE),
    "advised": Case(
        WIDTH,
        {
            "scaleUp": {**AT_ONCE, "selectPolicy": "Disabled"},
            "scaleDown": {**DROP, "selectPolicy": "Disabled"},
        },
        WAVE,
    ),
    "sleepy": Case(WIDTH, {"scaleUp": AT_ONCE, "scaleDown": DROP}, DOZE, minimum=0),
    "ready-pods": Case(SHARE, {"scaleUp": AT_ONCE, "scaleDown": DROP}, RATIO, pods=5, ready=3),
    "no-ready-pod": Case(SHARE, {"scaleUp": AT_ONCE, "scaleDown": DROP}, RATIO, pods=2),
}


@dataclass(frozen=True)
class Look:
    """What the controller found: when, the scale's spec and status, and the value it read."""

    time: float
    spec: int
    status: int
    value: float


@dataclass
class MetricsApi:
    """custom.metrics.k8s.io, and what was read from it. After each look the region's status
    follows its spec, so that the next one finds it there."""

    kubeconfig: Path
    looks: dict[str, list[Look]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, name: str) -> float:
        """Answer one look at a region."""
        case = CASES[name]
        spec, status = asyncio.run(self._followed(name))
        with self._lock:
            seen = self.looks.setdefault(name, [])
            value = case.values[min(len(seen), len(case.values) - 1)]
            seen.append(Look(time.time(), spec, status, value))
        return value

    async def _followed(self, name: str) -> tuple[int, int]:
        async with KubeClient(load_config(self.kubeconfig)) as client:
            region = await client.get(f"{REGIONS}/{name}")
            spec, status = region["spec"]["width"], region["status"]["width"]
            if spec != status:
                patch = {"status": {"width": spec}}
                await client.patch(f"{REGIONS}/{name}/status", patch)
        return spec, status


class Handler(BaseHTTPRequestHandler):
    """Discovery, and one metric of regions."""

    def __init__(self, api: MetricsApi, *rest: Any) -> None:
        self._api = api
        super().__init__(*rest)

    def do_GET(self) -> None:
        """Answer."""
        parts = self.path.partition("?")[0].strip("/").split("/")
        if len(parts) == 3:
            self._send(_discovery("/".join(parts[1:])))
        elif len(parts) == 8:
            self._send(_value(parts[6], self._api.read(parts[6])))
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def _send(self, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _discovery(group_version: str) -> dict[str, Any]:
    resource = {
        "name": "parallelregions.streamgraft.io/demand",
        "singularName": "",
        "namespaced": True,
        "kind": "MetricValueList",
        "verbs": ["get"],
    }
    served = [resource] if group_version.startswith("custom") else []
    kind = {"kind": "APIResourceList", "apiVersion": "v1"}
    return {**kind, "groupVersion": group_version, "resources": served}


def _value(name: str, value: float) -> dict[str, Any]:
    item = {
        "describedObject": {
            "kind": "ParallelRegion",
            "namespace": "default",
            "name": name,
            "apiVersion": "streamgraft.io/v1alpha1",
        },
        "metric": {"name": "demand", "selector": None},
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "value": f"{round(value * 1000)}m",
    }
    kind = {"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2"}
    return {**kind, "metadata": {}, "items": [item]}


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[Setting]:
    """etcd, an API server and the controllers, the autoscaler's among them."""
    running = api_server("autoscaler", tmp_path, hpa_sync_seconds=SYNC_SECONDS)
    with running as (setting, runner):
        admin = setting.home.kubeconfig("admin")
        signer = (setting.home.pki / f"pe-ca.{kind}" for kind in ("crt", "key"))
        resources.apply_base(admin, resources.pe_authority(*(file.read_bytes() for file in signer)))
        runner.start(controlplane.controller_manager(setting))
        yield setting


@pytest.fixture
def metrics_api(control_plane: Setting) -> Iterator[MetricsApi]:
    """The metrics API of this test, registered with the API server."""
    admin = control_plane.home.kubeconfig("admin")
    api = MetricsApi(admin)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(
        control_plane.pki("adapter-serving.crt"), control_plane.pki("adapter-serving.key")
    )
    server = ThreadingHTTPServer(
        ("127.0.0.1", control_plane.ports["adapter"]), partial(Handler, api)
    )
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server):
        authority = control_plane.pki("ca.crt").read_bytes()
        resources.apply_api_services(
            admin, resources.CUSTOM_METRICS, control_plane.ports["adapter"], authority
        )
        yield api


def manifest(name: str, case: Case) -> dict[str, Any]:
    """Return the HPA of a case."""
    region = {"apiVersion": "streamgraft.io/v1alpha1", "kind": "ParallelRegion", "name": name}
    source = {"describedObject": region, "metric": {"name": "demand"}, "target": case.target}
    spec: dict[str, Any] = {
        "scaleTargetRef": region,
        "minReplicas": case.minimum,
        "maxReplicas": case.maximum,
        "metrics": [{"type": "Object", "object": source}],
    }
    if case.behavior is not None:
        spec["behavior"] = dict(case.behavior)
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


async def create(client: KubeClient, name: str, case: Case) -> None:
    """Create a region of width 4, its pods, and its HPA."""
    spec: dict[str, Any] = {"job": "j", "region": name, "width": 4}
    spec |= {"maxWidth": MAX_WIDTH, "key": ["k"]}
    spec["autoscaling"] = {"minWidth": case.minimum}
    kind = {"apiVersion": "streamgraft.io/v1alpha1", "kind": "ParallelRegion"}
    await client.create(REGIONS, {**kind, "metadata": {"name": name}, "spec": spec})
    status = {"width": 4, "selector": f"region={name}", "epoch": 0, "observedGeneration": 1}
    await client.patch(f"{REGIONS}/{name}/status", {"status": status})
    pods = "/api/v1/namespaces/default/pods"
    for index in range(case.pods):
        metadata = {"name": f"{name}-{index}", "labels": {"region": name}}
        container = {"name": "c", "image": "none"}
        pod = {"metadata": metadata, "spec": {"containers": [container]}}
        await client.create(pods, {"apiVersion": "v1", "kind": "Pod", **pod})
        ready = {"type": "Ready", "status": "True" if index < case.ready else "False"}
        running = {"status": {"phase": "Running", "conditions": [ready]}}
        await client.patch(f"{pods}/{name}-{index}/status", running)
    await client.create(AUTOSCALERS, manifest(name, case))


async def test_the_library_decides_what_the_controller_does(
    control_plane: Setting, metrics_api: MetricsApi
) -> None:
    async with KubeClient(load_config(metrics_api.kubeconfig)) as client:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not await _has_account(client):
                await asyncio.sleep(0.1)
            for name, case in CASES.items():
                await create(client, name, case)
            while any(len(metrics_api.looks.get(name, [])) < LOOKS for name in CASES):
                await asyncio.sleep(0.2)
    for name, case in CASES.items():
        compare(name, case, metrics_api.looks[name])


async def _has_account(client: KubeClient) -> bool:
    found = await client.get("/api/v1/namespaces/default/serviceaccounts")
    return any(item["metadata"]["name"] == "default" for item in found["items"])


def compare(name: str, case: Case, looks: list[Look]) -> None:
    """Check that each look led to what the library says; at the edge of a window either side may
    be right, since the controller's clock is read a little later."""
    to_zero = case.minimum == 0
    hpa = HorizontalPodAutoscaler(spec_of(manifest(name, case)), scale_to_zero=to_zero)
    for index, (look, after) in enumerate(itertools.pairwise(looks)):
        scale = Scale(look.spec, look.status, case.pods, case.ready)
        decided: dict[int, HorizontalPodAutoscaler] = {}
        for late in (0.0, SLACK_SECONDS, -SLACK_SECONDS):
            tried = copy.deepcopy(hpa)
            decision = tried.reconcile(look.time + late, scale, {"demand": look.value})
            decided.setdefault(decision.replicas, tried)
        assert after.spec in decided, (name, index, looks[: index + 2], list(decided))
        hpa = decided[after.spec]
