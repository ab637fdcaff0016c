"""A region in a namespace of the shared environment, played by a hollow PE."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import Message

from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, Store
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster
from streamgraft_metrics_adapter.access.sessions import Sessions
from streamgraft_metrics_adapter.api.app import routed
from streamgraft_metrics_adapter.api.catalog import Catalog
from streamgraft_metrics_adapter.api.custom_metrics import GROUP
from streamgraft_metrics_adapter.api.object_labels import ObjectLabels
from streamgraft_metrics_adapter.objects import REGIONS
from streamgraft_metrics_adapter.prometheus.source import Row
from streamgraft_metrics_adapter.regions import RegionCache
from streamgraft_metrics_adapter.rules.configuration import MetricRule
from streamgraft_metrics_adapter.rules.rule_metrics import RuleMetrics
from streamgraft_metrics_adapter.settings import OWN_TARGETS
from streamgraft_metrics_adapter.signals.provider import Provider

Object = dict[str, Any]
EXPORTER = Path(__file__).with_name("hollow_pe_exporter.py")
JOB, REGION = "flights", "enrich"
NAME = names.region_name(JOB, REGION)
MAX_WIDTH = 4


_NOWHERE = KubeClient(KubeConfig(server="http://127.0.0.1:1"))
_PODS = {"apiVersion": "v1", "kind": "Pod", "resource": "pods", "nameLabel": "pod"}
_RULES: list[dict[str, Any]] = [
    {"name": "rate", "object": _PODS | {"namespaceLabel": "namespace"}, "window": "1m"},
    {
        "name": "free",
        "object": {"apiVersion": "v1", "kind": "Node", "resource": "nodes", "nameLabel": "node"},
    },
    {
        "name": "sum",
        "object": {
            "apiVersion": "v1",
            "kind": "Namespace",
            "resource": "namespaces",
            "nameLabel": "namespace",
        },
    },
    {"name": "queue", "external": {"namespaceLabel": "namespace"}},
    {"name": "world", "external": {}},
]


class GivenRows:
    """A source that answers queries, by name, with given rows; all others with none."""

    def __init__(self, answers: Mapping[str, Sequence[Row]]) -> None:
        self._answers = answers

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Return the rows given."""
        return iter(self._answers.get(name, ()))


class InProcess:
    """The application without its guard, with metrics from given rows; nothing else runs."""

    def __init__(self) -> None:
        rules = [
            MetricRule.model_validate({**rule, "series": "x", "query": "x"}) for rule in _RULES
        ]
        self.rules = RuleMetrics(rules)
        self._answers: dict[str, Sequence[Row]] = {}
        self.regions = Store(_NOWHERE, PARALLEL_REGION.path())
        self.regions.synced.set()
        self.provider = provider = Provider(
            RegionCache(self.regions),
            window_seconds=60.0,
            max_age_seconds=30.0,
            refresh_seconds=2.0,
            learned_from=OWN_TARGETS,
        )
        catalog = Catalog(provider, self.rules, ObjectLabels(_NOWHERE))
        self.app = routed(provider, catalog, _NOWHERE.config, Sessions())

    async def answer(self, query: str, *rows: Row) -> None:
        """Set the answer to one rule's query."""
        self._answers[query] = rows
        for metric in self.rules.all():
            await metric.refresh(0.0, GivenRows(self._answers))

    async def measure(self, evaluated_at: float, *rows: Row) -> None:
        """Set the rows of the signals' queries as of a Unix time."""
        await self.provider.refresh(evaluated_at, GivenRows({"lag": rows}))

    async def get(
        self, path: str, method: str = "GET", content: bytes = b"", **query: str
    ) -> tuple[int, Object]:
        """Return the status code and the document, which has the length that was announced."""
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query).encode(),
            "headers": [(b"content-type", b"application/json")] if content else [],
        }
        await self.app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        assert dict(sent[0]["headers"])[b"content-length"] == str(len(body)).encode()
        return int(sent[0]["status"]), json.loads(body)


@pytest.fixture
def called() -> InProcess:
    """An application of its own."""
    return InProcess()


class PlayedRegion:
    """A ParallelRegion with one pod at first; the test plays its operator and its load."""

    def __init__(self, kube: KubeClient, namespace: str, settings: Path) -> None:
        self.kube = kube
        self.namespace = namespace
        self.path = PARALLEL_REGION.path(namespace, NAME)
        self._settings = settings

    def load(self, *, arriving: float, processed: float, busy: float, cores: float = 0.0) -> None:
        """Set the load: records/s, the share of its time that each channel is busy, and CPU that is
        really used; from now on."""
        values = {"arriving": arriving, "processed": processed, "busy": busy, "cores": cores}
        fresh = self._settings.with_suffix(".new")
        fresh.write_text(json.dumps({**values, "partitions": MAX_WIDTH}))
        fresh.replace(self._settings)

    async def create(self) -> None:
        """Create the region and its pod."""
        spec = {"job": JOB, "region": REGION, "width": 1, "maxWidth": MAX_WIDTH, "key": ["k"]}
        body = PARALLEL_REGION.manifest(NAME, self.namespace, spec, labels={names.LABEL_JOB: JOB})
        await self.kube.create(PARALLEL_REGION.path(self.namespace), body)
        selector = f"{names.LABEL_JOB}={JOB},{names.LABEL_REGION}={REGION}"
        await self.status(width=1, selector=selector)
        await self.begin(0, 0)

    async def begin(self, pe: int, channel: int) -> None:
        """Create the pod of a channel."""
        pod = self._pod(str(pe), str(channel))
        await self.kube.create(f"/api/v1/namespaces/{self.namespace}/pods", pod)

    async def status(self, **values: Any) -> None:
        """Set parts of the region's status."""
        await self.kube.patch(f"{self.path}/status", {"status": values})

    async def resizing(self, status: str) -> None:
        """Set the condition Resizing."""
        now = "2026-01-01T00:00:00Z"
        condition = {"type": "Resizing", "status": status, "reason": "WidthChanged"}
        await self.status(conditions=[{**condition, "message": "", "lastTransitionTime": now}])

    async def metric(self, metric: str, version: str = "v1beta2", name: str = NAME) -> Object:
        """Read a metric through the aggregator."""
        place = f"/apis/{GROUP}/{version}/namespaces/{self.namespace}"
        return await self.kube.get(f"{place}/{REGIONS.qualified}/{name}/{metric}")

    async def value(self, metric: str) -> str | None:
        """Return a metric's value as served; None while it or the region is not there."""
        place = f"/apis/{GROUP}/v1beta2/namespaces/{self.namespace}"
        found = await self.tried(f"{place}/{REGIONS.qualified}/{NAME}/{metric}")
        return str(found["items"][0]["value"]) if found else None

    async def tried(self, path: str, **query: str) -> Object | None:
        """Read any metric through the aggregator; None while it is not there."""
        try:
            return await self.kube.get(path, **query)
        except ApiError as error:
            if error.code not in (404, 503):
                raise
            return None

    def _pod(self, pe: str, channel: str) -> Object:
        address = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        port = names.CONTROL_PORT
        arguments = ["$(IP)", str(port), str(self._settings)]
        labels = {"job": JOB, "region": REGION, "pe": pe, "channel": channel, "stage": "0"}
        return {
            "metadata": {
                "name": f"{JOB}-{pe}-1",
                "labels": {f"{names.GROUP}/{key}": value for key, value in labels.items()},
            },
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "pe",
                        "image": "hollow-pe",
                        "command": [sys.executable, str(EXPORTER), *arguments],
                        "env": [address],
                        "ports": [{"name": "control", "containerPort": port}],
                        "resources": {"requests": {"cpu": "100m"}},
                    }
                ],
            },
        }


Until = Callable[[Callable[[], Awaitable[bool]], float], Awaitable[None]]


@pytest.fixture
def until() -> Until:
    """Wait for a condition, with a deadline in seconds."""

    async def wait(condition: Callable[[], Awaitable[bool]], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            # Polling another process: there is no event to wait for.
            while not await condition():
                await asyncio.sleep(0.3)

    return wait


@pytest.fixture(scope="module")
def no_operator(cluster: Cluster) -> Iterator[None]:
    """The tests play the operator, so the real one, which deletes stray pods, must be away."""
    cluster.stop("operator")
    yield
    cluster.start("operator")


@pytest.fixture
async def region(
    kube: KubeClient, namespace: str, no_operator: None, tmp_path: Path
) -> PlayedRegion:
    """A region of width 1, at most 4, that processes 100 records/s in half of its time."""
    played = PlayedRegion(kube, namespace, tmp_path / "load.json")
    played.load(arriving=100, processed=200, busy=0.5)
    await played.create()
    return played
