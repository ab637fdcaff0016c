"""Two jobs that share a stream (docs/use/import-export.md): the page's example and commands."""

import asyncio
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conftest import fresh_namespace
from tests.producers import idempotent
from tests.sdk.test_documents import ROOT
from typer.testing import CliRunner

from bench.pods import family_of, process_of
from streamgraft.cli._app import app
from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import EXPORT, IMPORT, JOB, KINDS, PROCESSING_ELEMENT
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

EXAMPLES = ROOT / "examples" / "shared_stream"
PAGE = (ROOT / "docs" / "use" / "import-export.md").read_text()
WATCH = '''

@app.sink(inputs=clicks)
def watch(rows, batch):
    """Publish the clicks as before when somebody asks for it."""
    if rows.where("user = 'publish'").count():
        same = {"kind": "click", "version": 2, "tags": ["web", "eu"]}
        app.set_properties("clicks-export", same)
'''
STEER = '''

@app.sink(inputs=clicks)
def steer(rows, batch):
    """Change what is read when somebody asks for it."""
    asked = {row.user for row in rows.where("user in ('long', 'others')").collect()}
    if "long" in asked:
        app.set_filter(clicks, "millis > 1000")
    if "others" in asked:
        app.set_subscription(clicks, 'kind == "other"')
'''
KEEP = """

app.kafka_sink("kept", input=clicks, topic="shared-kept")
"""
PATIENCE_SECONDS = 120.0
MANY = 3000
"""Records: several batches, of which kills hit one."""
NEVER = 100_000
"""Failed probes after which a frozen pod is killed."""
EXPORTED, IMPORTED = "ingest--clicks-export", "totals-clicks"


class Clicks:
    """What is sent to the exporting job, and what the importing one makes of it."""

    def __init__(self, cluster: Cluster, prefix: str = "shared-") -> None:
        servers: dict[str, str | int | float | bool] = {
            "bootstrap.servers": cluster.bootstrap_servers
        }
        admin = AdminClient(servers)
        topics = [NewTopic(f"{prefix}clicks", 2, 1), NewTopic(f"{prefix}kept", 1, 1)]
        for created in admin.create_topics(topics).values():
            created.result()
        self._topic = f"{prefix}clicks"
        self._producer = idempotent(cluster.bootstrap_servers)
        self._consumer = Consumer({**servers, "group.id": "test"})
        self._consumer.assign([TopicPartition(f"{prefix}totals", 0, 0)])
        self._keeper = Consumer({**servers, "group.id": "kept"})
        self._keeper.assign([TopicPartition(f"{prefix}kept", 0, 0)])
        self.sent: Counter[str] = Counter()
        self.totals: dict[str, int] = {}
        self.kept: Counter[str] = Counter()

    def send(self, count: int, millis: int, *, counts: bool = True) -> None:
        """Send clicks of ten users; `counts`: whether the filter lets them through."""
        for number in range(count):
            user = f"u{number % 10}"
            self.say(user, millis)
            if counts:
                self.sent[user] += millis
        assert self._producer.flush(30) == 0

    def say(self, user: str, millis: int) -> None:
        """Send one click."""
        click = {"user": user, "page": "/", "millis": millis}
        self._producer.produce(self._topic, json.dumps(click))
        self._producer.poll(0)

    def ask(self, user: str, millis: int) -> None:
        """Send one click that functions take for a request, and that counts as any."""
        self.say(user, millis)
        self.sent[user] += millis
        assert self._producer.flush(30) == 0

    def read(self) -> dict[str, int]:
        """Return the newest total of each user."""
        for message in self._consumer.consume(1000, 0.2):
            if not message.error():
                row = json.loads(message.value() or b"{}")
                self.totals[row["user"]] = row["millis"]
        return self.totals

    async def counted(self) -> None:
        """Wait until the totals are those of all that was sent and lets through."""
        await until(lambda: self.read() == self.sent, lambda: (self.totals, self.sent))

    def read_kept(self) -> Counter[str]:
        """Return the sum for each user of what the exporting job has in a sink of its own."""
        for message in self._keeper.consume(1000, 0.2):
            if not message.error():
                row = json.loads(message.value() or b"{}")
                self.kept[row["user"]] += row["millis"]
        return self.kept

    async def all_kept(self) -> None:
        """Wait until the exporting job's own sink has all that was sent."""
        await until(lambda: self.read_kept() == self.sent, lambda: (self.kept, self.sent))

    def close(self) -> None:
        """End the consumers."""
        self._producer.flush(30)
        self._consumer.close()
        self._keeper.close()


async def until(done: Callable[[], bool], shown: Callable[[], Any]) -> None:
    """Wait for something that blocks a little."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await asyncio.to_thread(done):
        assert time.monotonic() < deadline, shown()


async def submit(cluster: Cluster, namespace: str, file: Path, *more: str) -> None:
    """Submit an application."""
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    command = [*options, "submit", str(file), *more]
    result = await asyncio.to_thread(CliRunner().invoke, app, command)
    assert result.exit_code == 0, result.output


async def patched(kube: KubeClient, namespace: str, name: str) -> None:
    """Send the page's `kubectl patch` of this object."""
    command = re.compile(rf"kubectl patch (\w+) {name} --type merge -p '(.*)'")
    ((kind, patch),) = command.findall(PAGE)
    (found,) = [item for item in KINDS if item.kind.lower() == kind]
    await kube.patch(found.path(namespace, name), json.loads(patch))


async def importing(
    kube: KubeClient, namespace: str, wanted: Callable[[Object], bool]
) -> dict[str, Object]:
    """Wait until the Import's status is as wanted; return its conditions."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        status = (await kube.get(IMPORT.path(namespace, IMPORTED))).get("status") or {}
        if status and wanted(status):
            return {item["type"]: item for item in status["conditions"]}
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.1)


async def elements(kube: KubeClient, namespace: str) -> dict[str, Object]:
    """Return the PEs of both jobs."""
    found = (await kube.list(PROCESSING_ELEMENT.path(namespace), {}))["items"]
    return {item["metadata"]["name"]: item for item in found}


async def launched_once(kube: KubeClient, namespace: str, before: dict[str, Object]) -> None:
    """Check that all PEs have the pods that they had, which are their first."""
    after = await elements(kube, namespace)
    assert {name: item["status"]["pod"] for name, item in after.items()} == {
        name: item["status"]["pod"] for name, item in before.items()
    }
    assert {item["status"]["launchCount"] for item in after.values()} == {1}


async def test_two_jobs_share_a_stream(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    """A connection is unmade by a user and made again by a function, and the filter is changed:
    no record is lost or doubled, and no PE restarts."""
    clicks = Clicks(cluster)
    ingest = tmp_path / "ingest.py"
    ingest.write_text((EXAMPLES / "ingest.py").read_text() + WATCH)
    await submit(cluster, namespace, ingest)
    await submit(cluster, namespace, EXAMPLES / "totals.py", "--wait")
    connected = [f"{namespace}/{EXPORTED}"]
    await importing(kube, namespace, lambda status: status["exports"] == connected)
    clicks.send(200, 10)
    clicks.send(50, 0, counts=False)
    await clicks.counted()
    before = await elements(kube, namespace)

    await patched(kube, namespace, EXPORTED)
    await importing(kube, namespace, lambda status: not status.get("exports"))
    reading = await elements(kube, namespace)
    seen = dict(clicks.read())
    clicks.send(200, 20)
    await asyncio.sleep(2.0)
    assert clicks.read() == seen, "it reads on"
    clicks.say("publish", 0)
    await importing(kube, namespace, lambda status: status.get("exports") == connected)
    await clicks.counted()
    assert started(reading) == started(await elements(kube, namespace))

    await patched(kube, namespace, IMPORTED)
    await until_restarted(kube, namespace, reading)
    clicks.send(100, 500, counts=False)
    clicks.send(100, 2000)
    await clicks.counted()

    await other_schema(kube, namespace)
    conditions = await importing(
        kube,
        namespace,
        lambda status: any(item["reason"] == "DoesNotFit" for item in status["conditions"]),
    )
    why = f"it takes nothing of {namespace}/other: its column millis is string, not long"
    assert conditions["Fits"]["message"] == why
    assert conditions["Ready"]["status"] == "True"
    clicks.send(100, 3000)
    await clicks.counted()
    await launched_once(kube, namespace, before)
    clicks.close()


async def test_a_function_changes_what_its_own_job_imports(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    """Its filter and its subscription, while it runs; what it then does not read is read once a
    user has changed the subscription back."""
    clicks = Clicks(cluster, f"{namespace}-")
    for name, more in {"ingest.py": "", "totals.py": STEER}.items():
        text = (EXAMPLES / name).read_text() + more
        (tmp_path / name).write_text(text.replace("shared-", f"{namespace}-"))
    await submit(cluster, namespace, tmp_path / "ingest.py")
    await submit(cluster, namespace, tmp_path / "totals.py", "--wait")
    connected = [f"{namespace}/{EXPORTED}"]
    await importing(kube, namespace, lambda status: status.get("exports") == connected)
    declared = (await kube.get(IMPORT.path(namespace, IMPORTED)))["spec"]
    clicks.send(100, 10)
    await clicks.counted()

    before = await elements(kube, namespace)
    clicks.ask("long", 2000)
    await until_restarted(kube, namespace, before)
    clicks.send(100, 500, counts=False)
    clicks.send(100, 2000)
    await clicks.counted()

    seen = dict(clicks.read())
    clicks.ask("others", 2000)
    await importing(kube, namespace, lambda status: not status.get("exports"))
    changed = (await kube.get(IMPORT.path(namespace, IMPORTED)))["spec"]
    assert changed == declared | {"filter": "millis > 1000", "subscription": 'kind == "other"'}
    clicks.send(100, 3000)
    await asyncio.sleep(2.0)
    read = clicks.read()
    assert {user: read[user] for user in seen} == seen, "it reads on"
    await kube.patch(
        IMPORT.path(namespace, IMPORTED), {"spec": {"subscription": declared["subscription"]}}
    )
    await importing(kube, namespace, lambda status: status.get("exports") == connected)
    await clicks.counted()
    await launched_once(kube, namespace, before)
    clicks.close()


@pytest.fixture
async def other_namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A second namespace."""
    async with fresh_namespace(kube) as name:
        yield name


async def test_both_sides_are_killed_and_have_namespaces_of_their_own(
    cluster: Cluster, kube: KubeClient, namespace: str, other_namespace: str, tmp_path: Path
) -> None:
    """Each record counts once for the reader, whoever dies while records come."""
    clicks = Clicks(cluster, f"{namespace}-")
    here = f'"clicks",\n    namespaces=["{namespace}"],'
    forms = {
        "ingest.py": ("export(clicks,", f'export(clicks, namespaces=["{other_namespace}"],'),
        "totals.py": ('"clicks",', here),
    }
    for name, change in forms.items():
        text = (EXAMPLES / name).read_text().replace(*change, 1)
        (tmp_path / name).write_text(text.replace("shared-", f"{namespace}-"))
    await submit(cluster, namespace, tmp_path / "ingest.py")
    await submit(cluster, other_namespace, tmp_path / "totals.py", "--wait")
    connected = [f"{namespace}/{EXPORTED}"]
    await importing(kube, other_namespace, lambda status: status.get("exports") == connected)
    for side in (other_namespace, namespace) * 2:
        clicks.send(MANY, 10)
        await killed(kube, side)
        clicks.send(MANY, 20)
        await clicks.counted()
    clicks.close()


async def test_an_exporter_goes_on_while_its_importer_is_frozen(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    """A frozen importer holds back nothing; each record counts once for it when it goes on."""
    clicks = Clicks(cluster, f"{namespace}-")
    for name, more in {"ingest.py": KEEP, "totals.py": ""}.items():
        text = (EXAMPLES / name).read_text() + more
        (tmp_path / name).write_text(text.replace("shared-", f"{namespace}-"))
    await submit(cluster, namespace, tmp_path / "ingest.py")
    await submit(cluster, namespace, tmp_path / "totals.py", "--wait")
    connected = [f"{namespace}/{EXPORTED}"]
    await importing(kube, namespace, lambda status: status.get("exports") == connected)
    pod = await left_alone(kube, namespace)
    clicks.send(200, 10)
    await clicks.counted()
    clicks.send(MANY, 10)
    with frozen(pod) as processes:
        for _ in range(3):
            clicks.send(MANY, 20)
            await clicks.all_kept()
        assert {process.status() for process in processes} == {psutil.STATUS_STOPPED}
        assert clicks.read() != clicks.sent
    await clicks.counted()
    clicks.send(100, 30)
    await clicks.counted()
    await clicks.all_kept()
    after = await importer(kube, namespace)
    assert after["metadata"]["uid"] == pod["metadata"]["uid"], "another took its place"
    clicks.close()


async def left_alone(kube: KubeClient, namespace: str) -> Object:
    """Return the pod that imports, once it is one that no failed probes kill."""
    settings = {"processingElement": {"probeFailureThreshold": NEVER}}
    await kube.patch(JOB.path(namespace, "totals"), {"spec": settings})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        pod = await importer(kube, namespace)
        if pod and ready(pod):
            (container,) = pod["spec"]["containers"]
            if container["livenessProbe"]["failureThreshold"] == NEVER:
                return pod
        assert time.monotonic() < deadline, pod
        await asyncio.sleep(0.1)


async def importer(kube: KubeClient, namespace: str) -> Object:
    """Return the pod that imports; nothing while there is none."""
    found = await elements(kube, namespace)
    (pe,) = [item for item in found.values() if item["spec"].get("importOperators")]
    try:
        return await kube.get(POD.path(namespace, (pe.get("status") or {}).get("pod") or "none"))
    except NotFound:
        return {}


def ready(pod: Object) -> bool:
    """Tell whether a pod's container runs and answers."""
    found = pod["status"].get("containerStatuses") or []
    return bool(found) and all(item["ready"] for item in found)


@contextmanager
def frozen(pod: Object) -> Iterator[list[psutil.Process]]:
    """Stop all processes of a pod meanwhile."""
    processes = family_of(pod)
    try:
        for process in processes:
            process.suspend()
        yield processes
    finally:
        for process in processes:
            process.resume()


async def killed(kube: KubeClient, namespace: str) -> None:
    """Kill the pod of the PE that exports or imports."""
    found = await elements(kube, namespace)
    (pe,) = [
        item
        for item in found.values()
        if item["spec"].get("importOperators") or item["spec"]["job"] == "ingest"
    ]
    pod = await kube.get(POD.path(namespace, pe["status"]["pod"]))
    os.kill(process_of(pod), signal.SIGKILL)


def started(found: dict[str, Object]) -> dict[str, Any]:
    """Return when the queries of the importing PE were started."""
    return {
        name: [shard["startedAt"] for shard in item["status"]["runtime"]["shards"].values()]
        for name, item in found.items()
        if item["spec"].get("importOperators")
    }


async def until_restarted(kube: KubeClient, namespace: str, before: dict[str, Object]) -> None:
    """Wait until the query of the import was started anew, with its filter."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = await elements(kube, namespace)
        shards = [
            shard
            for item in found.values()
            if item["spec"].get("importOperators")
            for shard in item["status"]["runtime"]["shards"].values()
        ]
        running = bool(shards) and all(shard["state"] == "Running" for shard in shards)
        if running and started(found) != started(before):
            return
        assert time.monotonic() < deadline, shards
        await asyncio.sleep(0.1)


async def other_schema(kube: KubeClient, namespace: str) -> None:
    """Make an export of the same properties and with another schema."""
    item = await kube.get(EXPORT.path(namespace, EXPORTED))
    spec = {**item["spec"], "job": "nobody", "topic": "nothing"}
    spec["schema"] = spec["schema"].replace('"long"', '"string"')
    await kube.create(EXPORT.path(namespace), EXPORT.manifest("other", namespace, spec))
