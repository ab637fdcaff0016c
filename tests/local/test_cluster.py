"""The embedded environment itself: what it serves, and that it comes and goes cleanly."""

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamgraft_common.kube import ApiError, Invalid, KubeClient
from streamgraft_local import Cluster, ClusterSpec, LocalError, Phase, Step
from streamgraft_local.probes import http

pytestmark = pytest.mark.integration

REGION = {
    "apiVersion": "streamgraft.io/v1alpha1",
    "kind": "ParallelRegion",
    "metadata": {"name": "flights-enrich"},
    "spec": {"job": "flights", "region": "enrich", "width": 1, "maxWidth": 4, "key": []},
}


def test_every_component_serves(cluster: Cluster) -> None:
    """All of them run, and their probes find nothing to object to."""
    assert {item.name: item.problem for item in cluster.status()} == dict.fromkeys(
        [
            *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
            *("kafka", "prometheus", "node", "operator", "adapter"),
        ]
    )


def test_etcd_answers_the_api_server_only(cluster: Cluster) -> None:
    """Loopback is open to all users of the machine, and to web pages."""
    url = f"127.0.0.1:{cluster.state().ports['etcd']}"
    pki = cluster.home.pki
    ours = http(f"https://{url}/version", pki / "backend-ca.crt", pki / "backend-client")
    assert ours() is None
    for client in (None, pki / "admin", pki / "operator"):
        assert http(f"https://{url}/version", pki / "backend-ca.crt", client)() is not None
    assert http(f"http://{url}/version")() is not None


async def test_the_node_answers_the_api_server_only(cluster: Cluster, kube: KubeClient) -> None:
    node = await kube.get("/api/v1/nodes/local")
    url = f"https://{node['status']['addresses'][0]['address']}:10250/healthz"

    async def answer(client: str | None) -> str:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if client:
            context.load_cert_chain(
                cluster.home.pki / f"{client}.crt", cluster.home.pki / f"{client}.key"
            )
        async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as found:
            return await found.text()

    assert await answer("backend-client") == "ok"
    for stranger in (None, "admin"):
        with pytest.raises(aiohttp.ClientError):
            await answer(stranger)


def test_up_again_starts_nothing(cluster: Cluster) -> None:
    """A second `up` leaves every process alone."""
    before = {item.name: item.pid for item in cluster.status()}
    steps: list[Step] = []
    cluster.up(steps.append)
    assert {item.name: item.pid for item in cluster.status()} == before
    assert [step for step in steps if step.phase is Phase.FAILED] == []


@pytest.mark.parametrize("plural", ["jobs", "processingelements", "parallelregions"])
async def test_kinds_are_served(kube: KubeClient, namespace: str, plural: str) -> None:
    """The definitions are in place."""
    path = f"/apis/streamgraft.io/v1alpha1/namespaces/{namespace}/{plural}"
    assert (await kube.get(path))["items"] == []


@pytest.mark.parametrize(
    ("width", "message"),
    [
        (0, "width 0 is for regions whose autoscaling has min_width 0"),
        (5, "width must not exceed maxWidth"),
        ("two", "must be of type integer"),
    ],
)
async def test_region_refuses_width(
    kube: KubeClient, namespace: str, width: object, message: str
) -> None:
    """A width that can't be is refused with the reason."""
    path = f"/apis/streamgraft.io/v1alpha1/namespaces/{namespace}/parallelregions"
    await kube.create(path, REGION)
    with pytest.raises(Invalid) as refused:
        await kube.patch(f"{path}/flights-enrich", {"spec": {"width": width}})
    assert message in refused.value.message


async def test_a_region_that_could_never_wake_up_is_refused(
    kube: KubeClient, namespace: str
) -> None:
    path = f"/apis/streamgraft.io/v1alpha1/namespaces/{namespace}/parallelregions"
    await kube.create(path, REGION)
    sleepy = {"minWidth": 0, "metric": "lag-utilization"}
    with pytest.raises(Invalid, match="minWidth 0 needs metric demand"):
        await kube.patch(f"{path}/flights-enrich", {"spec": {"autoscaling": sleepy}})
    awake = {"autoscaling": {**sleepy, "metric": "demand"}}
    await kube.patch(f"{path}/flights-enrich", {"spec": awake})


async def test_what_earlier_releases_let_through_can_still_be_written(
    kube: KubeClient, namespace: str
) -> None:
    """Only the build refuses it: the region of a job that runs goes on, and has its width set."""
    path = f"/apis/streamgraft.io/v1alpha1/namespaces/{namespace}/parallelregions"
    await kube.create(path, REGION)
    night = {"start": "22:00", "end": "06:00", "minWidth": 2}
    old = {"metric": "lag-utilization", "mode": "advise", "periods": [night]}
    await kube.patch(f"{path}/flights-enrich", {"spec": {"autoscaling": old}})
    await kube.patch(f"{path}/flights-enrich", {"spec": {"width": 2}})


@pytest.mark.parametrize("width", [0, 5, "two"])
async def test_scale_refuses_width(kube: KubeClient, namespace: str, width: object) -> None:
    """The same through /scale, which is what the autoscaler uses."""
    path = f"/apis/streamgraft.io/v1alpha1/namespaces/{namespace}/parallelregions"
    await kube.create(path, REGION)
    with pytest.raises(ApiError) as refused:
        await kube.patch(f"{path}/flights-enrich/scale", {"spec": {"replicas": width}})
    assert refused.value.code in (400, 422)
    assert (await kube.get(f"{path}/flights-enrich"))["spec"]["width"] == 1


def test_kafka_keeps_records(cluster: Cluster) -> None:
    """What is produced to a created topic is consumed."""
    servers: dict[str, str | int | float | bool] = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("letters", 2, 1)])["letters"].result(timeout=30)
    producer = Producer(servers)
    sent = [f"record-{number}".encode() for number in range(100)]
    for value in sent:
        producer.produce("letters", value)
    assert producer.flush(30) == 0
    consumer = Consumer({**servers, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["letters"])
    received: list[bytes | None] = []
    while len(received) < len(sent) and (batch := consumer.consume(100, timeout=30)):
        received += [message.value() for message in batch]
    consumer.close()
    assert sorted(filter(None, received)) == sorted(sent)


def test_component_stops_and_starts(cluster: Cluster) -> None:
    """One component can go away and come back; the status says so in between."""
    before = _pids(cluster)
    cluster.stop("prometheus")
    assert [item.name for item in cluster.status() if item.problem] == ["prometheus"]
    assert http(f"{cluster.prometheus_url}/-/ready")() is not None
    cluster.start("prometheus")
    assert [item.name for item in cluster.status() if item.problem] == []
    after = _pids(cluster)
    assert [name for name in before if before[name] != after[name]] == ["prometheus"]


def test_unknown_component(cluster: Cluster) -> None:
    """The error names those that there are."""
    with pytest.raises(LocalError, match="kube-apiserver"):
        cluster.stop("zookeeper")


async def test_pod_runs_and_its_log_is_served(kube: KubeClient, namespace: str) -> None:
    """Scheduler, process node and service accounts work together."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    container = {"name": "main", "image": "any", "command": ["echo", "hello from a pod"]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    await kube.create(path, {"metadata": {"name": "hello"}, "spec": spec})
    phase = await _phase_after(kube, f"{path}/hello", {"Pending", "Running"})
    assert phase == "Succeeded"
    log: dict[str, Any] = await kube.get(f"{path}/hello/log")
    assert log["text"].strip() == "hello from a pod"


def test_down_without_up(tmp_path: Path) -> None:
    """There is nothing to do, and nothing is left behind."""
    environment = Cluster(ClusterSpec(name="never", base=tmp_path))
    environment.down(delete=True)
    assert environment.leftovers() == []
    with pytest.raises(LocalError, match="run `streamgraft up` first"):
        environment.status()


def _pids(cluster: Cluster) -> dict[str, int | None]:
    return {item.name: item.pid for item in cluster.status()}


async def _phase_after(kube: KubeClient, path: str, passing: set[str]) -> str:
    """Return the first phase that is not one of `passing`."""
    version = str((await kube.get(path))["metadata"]["resourceVersion"])
    folder, _, name = path.rpartition("/")
    selector = {"fieldSelector": f"metadata.name={name}"}
    phase = str((await kube.get(path))["status"]["phase"])
    if phase not in passing:
        return phase
    async for _, pod in kube.watch(folder, version, selector, timeout_seconds=60):
        if "status" in pod and (phase := str(pod["status"]["phase"])) not in passing:
            return phase
    return phase
