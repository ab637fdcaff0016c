"""Autoscaling on a live job: asleep and awake again, explained, replayed, and only advised."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.producers import idempotent

from streamgraft.cli._explain import load_query
from streamgraft_common import names
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube import Invalid, KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

APPLICATION = Path(__file__).with_name("live_application.py")
PATIENCE_SECONDS = 400
RECORDS = 100


class Live:
    """The job in its namespace."""

    def __init__(self, cluster: Cluster, kube: KubeClient, namespace: str) -> None:
        self._cluster, self._kube, self._namespace = cluster, kube, namespace
        self._producer = idempotent(cluster.bootstrap_servers)
        self._consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": namespace}
        )
        self.ids: Counter[int] = Counter()
        self.sent = 0

    async def command(self, *arguments: str) -> str:
        """Run the `streamgraft` command, which must succeed, and return what it prints."""
        code, output = await self._run(*arguments)
        assert code == 0, output
        return output

    async def printed(self, wanted: str, *arguments: str) -> str:
        """Run a command until it prints what is wanted, and return all that it prints: decisions
        are made anew with each sample, and a young job has not recorded much."""
        output = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    code, output = await self._run(*arguments)
                    if code == 0 and wanted in output:
                        return output
                    await asyncio.sleep(2)
        raise AssertionError(f"not printed in time: {wanted}, but: {output}")

    async def _run(self, *arguments: str) -> tuple[int | None, str]:
        program = str(Path(sys.executable).with_name("streamgraft"))
        options = ("--kubeconfig", str(self._cluster.kubeconfig), "-n", self._namespace)
        process = await asyncio.create_subprocess_exec(
            program,
            *options,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode, output.decode()

    def explain(self, region: str) -> tuple[str, ...]:
        """Return the arguments of the command that explains a region."""
        return "explain", "region", f"live-{region}"

    def replay(self, query: str, *settings: str) -> tuple[str, ...]:
        """Return the arguments of the command that replays what Prometheus has recorded."""
        return "replay", self._cluster.prometheus_url, "--query", query, *settings

    async def region(self, region: str, is_so: Callable[[Object, dict[str, str]], bool]) -> Object:
        """Wait until it is so with a region; `is_so` gets it, and its conditions."""
        path = PARALLEL_REGION.path(self._namespace, names.region_name("live", region))
        return await self._when(
            path, lambda item: is_so(item, {e["type"]: e["status"] for e in _conditions(item)})
        )

    async def asleep(self, region: str) -> tuple[list[str], str]:
        """Wait until a region sleeps; return its pods and what `explain` says, both of that time.

        Seen on a busy machine: its HPA woke it once more before it was asked.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                slept = await self.region(region, _is_asleep)
                seen = await self.pods(slept), await self.command(*self.explain(region))
                now = await self.region(region, lambda item, _: True)
                if now["metadata"]["generation"] == slept["metadata"]["generation"]:
                    return seen

    async def pods(self, region: Object) -> list[str]:
        """Return the pods that the region's selector, which the HPA uses, finds."""
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        found = await self._kube.get(path, labelSelector=region["status"]["selector"])
        return [pod["metadata"]["name"] for pod in found["items"]]

    async def advice(self) -> str:
        """Wait for the Event that tells what the autoscaler would do."""
        path = f"/api/v1/namespaces/{self._namespace}/events"
        events = await self._when(
            path, lambda found: bool(found["items"]), fieldSelector="reason=WidthAdvised"
        )
        return str(events["items"][0]["message"])

    async def autoscaler_pauses(self, region: str) -> None:
        """Wait until the region's HPA says that it takes width 0 as set by somebody."""
        path = f"{AUTOSCALER.path(self._namespace)}/{names.region_name('live', region)}"
        await self._when(
            path, lambda item: "ScalingDisabled" in [e["reason"] for e in _conditions(item)]
        )

    @asynccontextmanager
    async def trickle(self) -> AsyncIterator[None]:
        """Send a few records a second."""

        async def keep_sending() -> None:
            while True:
                self._produce(1)
                await asyncio.sleep(0.2)

        sending = asyncio.create_task(keep_sending())
        try:
            yield
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def send(self, count: int) -> None:
        """Send records, and wait until all that were ever sent came out, once each."""
        self._produce(count)
        self._producer.flush(30)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.ids) < self.sent:
                await asyncio.to_thread(self._read)
        assert self.ids == Counter(range(self.sent))

    async def _when(self, path: str, is_so: Callable[[Object], bool], **query: str) -> Object:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = await self._kube.get(path, **query)
                with suppress(KeyError):  # a new object has no status yet
                    if is_so(found):
                        return found
                await asyncio.sleep(0.2)

    def _produce(self, count: int) -> None:
        for _ in range(count):
            value = json.dumps({"id": self.sent, "key": f"key-{self.sent % 7}"})
            self._producer.produce("live-in", value, f"key-{self.sent % 7}")
            self.sent += 1
        self._producer.poll(0)

    def _read(self) -> None:
        if not self._consumer.assignment():
            self._consumer.assign([TopicPartition("live-out", 0, 0)])
        for message in self._consumer.consume(1000, 0.5):
            if message.error() is None:
                row: dict[str, Any] = json.loads(message.value() or b"{}")
                self.ids[row["id"]] += 1


@pytest.fixture
def live(cluster: Cluster, kube: KubeClient, namespace: str) -> Live:
    """Topics, and what to do with a job; it is not submitted yet."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for topic in ("live-in", "live-out"):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    return Live(cluster, kube, namespace)


async def test_a_live_job_sleeps_wakes_up_and_is_explained(live: Live, namespace: str) -> None:
    await live.command("submit", str(APPLICATION), "--wait", "--timeout", str(PATIENCE_SECONDS))
    await live.send(RECORDS)

    pods, text = await live.asleep("sleepy")
    assert pods == []
    assert "wakes it as soon as a record waits or arrives" in text

    await live.send(1)  # the HPA sees it in Kafka, and wakes the region
    await live.region("sleepy", lambda item, _: item["status"]["width"] > 0)

    # The other region was never resized: it only gets Events.
    assert await live.advice() == "the load asks for width 1; it is 2 (mode: advise)"
    text = await live.printed("Decision: width 1", *live.explain("advised"))
    assert "it only advises: it does not shrink the region" in text
    advised = await live.region("advised", lambda item, _: True)
    assert (advised["spec"]["width"], advised["status"]["changes"]) == (2, [])

    # What Prometheus has recorded of this very job is a load to try settings on.
    query = load_query(namespace, "live", "sleepy")
    choice = ("--true-rate", "50", "--shards", "2", "--hours", "0.5", "--set", "min_width=0")
    await live.printed("of load, replayed in steps of 15 s", *live.replay(query, *choice))

    # By hand it goes to sleep, too, and then only by hand it wakes up. Records that keep coming
    # have the HPA leave it awake until then, and would have it wake the region afterwards.
    async with live.trickle():
        await live.region("sleepy", _is_awake)
        await live.command("scale", "live", "sleepy", "0", "--wait")
        await live.region("sleepy", _is_asleep)
        await live.autoscaler_pauses("sleepy")
        asleep = await live.region("sleepy", lambda item, _: True)
        assert asleep["spec"]["width"] == 0
        await live.command("scale", "live", "sleepy", "1")
        await live.region("sleepy", _is_awake)
    await live.send(RECORDS)
    await live.command("cancel", "live")


def _conditions(item: Object) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (item.get("status") or {}).get("conditions", [])
    return found


def _is_asleep(item: Object, states: dict[str, str]) -> bool:
    return (states.get("Asleep"), states.get("Resizing")) == ("True", "False")


def _is_awake(item: Object, states: dict[str, str]) -> bool:
    return item["status"]["width"] > 0 and states.get("Resizing") == "False"


async def test_only_regions_that_may_sleep_have_width_0(kube: KubeClient, namespace: str) -> None:
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
    path = PARALLEL_REGION.path(namespace)
    for autoscaling in ({}, {"minWidth": 1}, {"minWidth": 0}):
        body = PARALLEL_REGION.manifest("j-r", namespace, {**spec, "autoscaling": autoscaling})
        await kube.create(path, body)
        scaled = kube.patch(f"{path}/j-r/scale", {"spec": {"replicas": 0}})
        if autoscaling == {"minWidth": 0}:
            await scaled
        else:
            with pytest.raises(Invalid, match="width 0 is for regions whose autoscaling has"):
                await scaled
        await kube.delete(f"{path}/j-r")
