"""A job is edited while records come, again and again: what it counts is what was sent.

Edits of code, sinks, triggers, names, branches, sources and fusion are made under load, and what
came out is compared with a count of all that was sent.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.sdk.counting import Streams
from typer.testing import CliRunner, Result

from streamgraft.cli._app import app
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

EACH = 100
SOME = 10
PAUSE_SECONDS = 0.1
"""Between so many records while the job is edited."""
HEALTHY_SECONDS = 180.0
APPLICATION = """
from pyspark.sql import functions as F

import streamgraft as sg

FACTOR = {factor}

app = sg.Application("counts", trigger_seconds={trigger})
{first}
records = app.kafka_source("records", topic="{source}", schema="key string")

with app.parallel("work", key=["key"], width=1, max_width=2):

    @app.operator(inputs=records, output_mode="update", uid="{uid}")
    def {name}(rows):
        return rows.groupBy("key"){aggregate}

    @app.operator(inputs={name}, output_mode="update")
    def scaled(rows):
        return rows.withColumn("count", F.udf(lambda n: n * FACTOR, "bigint")("count"))

{last}
app.kafka_sink("{uid}-results", input={name}, topic="{sink}", key=["key"], apart=True)
app.kafka_sink("scaled-results", input=scaled, topic="{sink}-scaled", key=["key"], apart=True)
"""
COUNT = ".count()"
SUM = ".agg(F.sum(F.length('key')).alias('count'))"
SINK = """
app.kafka_sink("more-results", input={name}, topic="{sink}-more", key=["key"], apart=True)
"""
BRANCH = """
    @app.operator(inputs={name})
    def doubled(rows):
        return rows.withColumn("count", F.col("count") * 2)

app.kafka_sink("more-results", input=doubled, topic="{sink}-more", key=["key"], apart=True)
"""
SOURCE = """
other = app.kafka_source("other", topic="{source}", schema="key string")
app.kafka_sink("copies", input=other, topic="{sink}-copies")
"""


class Edited:
    """A job of one application, in one form after the other."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.streams = Streams(cluster, namespace)
        self.sink = f"{self.streams.source}-out"
        self.factor = 2
        self._cluster = cluster
        self._namespace = namespace
        self._file = folder / "counts.py"

    def run(self, *arguments: str | Path) -> Result:
        """Run the command line."""
        options = ["--kubeconfig", str(self._cluster.kubeconfig), "-n", self._namespace]
        return CliRunner().invoke(app, [*options, *map(str, arguments)])

    def written(
        self,
        name: str = "counted",
        first: str = "",
        last: str = "",
        aggregate: str = COUNT,
        trigger: float = 0.3,
        uid: str | None = None,
    ) -> Path:
        """Write the application in a form."""
        values = {"source": self.streams.source, "sink": self.sink, "name": name}
        values |= {"uid": uid or name}
        values |= {"aggregate": aggregate, "trigger": str(trigger), "factor": str(self.factor)}
        parts = {"first": first.format(**values), "last": last.format(**values)}
        self._file.write_text(APPLICATION.format(**values, **parts))
        return self._file

    @contextmanager
    def load(self) -> Iterator[None]:
        """Send records until the block ends, then some more; all must have been counted then."""
        done = Event()
        sender = Thread(target=self._send, args=(done,))
        sender.start()
        try:
            yield
        finally:
            done.set()
            sender.join()
        self.counted()

    def submitted(self, form: Path) -> None:
        """Submit a form under load."""
        with self.load():
            result = self.run("submit", form, "--wait")
            assert result.exit_code == 0, result.output

    def counted(self) -> None:
        """Wait until all that was sent is counted, and scaled as the code says now."""
        self.streams.send(EACH)
        self.streams.counted(self.sink)
        self.streams.counted(f"{self.sink}-scaled", self.factor)

    def pods(self) -> dict[str, str]:
        """Return the pod of each PE, by uid."""
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        selector = f"{names.LABEL_JOB}=counts,{names.LABEL_PE}"
        found = self._asked(lambda client: client.get(path, labelSelector=selector))
        return {
            item["metadata"]["labels"][names.LABEL_PE]: item["metadata"]["uid"]
            for item in found["items"]
        }

    def patched(self, spec: Object) -> None:
        """Change the Job's spec under load."""
        path = JOB.path(self._namespace, "counts")
        with self.load():
            changed = self._asked(lambda client: client.patch(path, {"spec": spec}))
            deadline, job = time.monotonic() + HEALTHY_SECONDS, changed
            while not _is_healthy(job, changed["metadata"]["generation"]):
                assert time.monotonic() < deadline, job["status"]
                time.sleep(0.5)
                job = self._asked(lambda client: client.get(path))

    def _asked(self, ask: Callable[[KubeClient], Any]) -> Any:
        async def asked() -> Any:
            async with KubeClient(load_config(self._cluster.kubeconfig)) as client:
                return await ask(client)

        return asyncio.run(asked())

    def _send(self, done: Event) -> None:
        while not done.wait(PAUSE_SECONDS):
            self.streams.send(SOME)


def _is_healthy(job: Object, generation: int) -> bool:
    conditions = {item["type"]: item for item in job["status"]["conditions"]}
    submitted = conditions["Submitted"]
    current = submitted["observedGeneration"] == generation and submitted["status"] == "True"
    return bool(current and job["status"]["phase"] == "Healthy")


@pytest.fixture
def job(cluster: Cluster, namespace: str, tmp_path: Path) -> Edited:
    """A job that has counted some records."""
    edited = Edited(cluster, namespace, tmp_path)
    assert edited.run("submit", edited.written(), "--wait").exit_code == 0
    edited.counted()
    return edited


def test_code_sinks_and_triggers(job: Edited) -> None:
    """Code and triggers are edited in place: of the code others do not even hear. A sink moves
    other PEs to other ids.
    """
    pods = job.pods()
    job.factor = 3
    shown = job.run("plan", job.written()).output
    assert "Code of scaled: swapped in running drivers" in shown
    assert f"Plan: {len(pods) - 1} identical, 0 metadata only, 1 in place" in shown
    job.submitted(job.written())
    assert job.pods() == pods
    job.submitted(job.written(trigger=0.5))
    assert job.pods() == pods
    job.submitted(job.written(last=SINK))
    job.streams.counted(f"{job.sink}-more")
    job.submitted(job.written())
    job.submitted(job.written("tallied", uid="counted"))


def test_edits_keep_state_and_positions(job: Edited) -> None:
    """Stages that come and split, PEs that move to other ids, and edits that are refused."""
    job.submitted(job.written(last=BRANCH))
    job.submitted(job.written(first=SOURCE, last=BRANCH))
    job.patched({"fusion": {"type": "legacy"}})

    summed = job.written(first=SOURCE, last=BRANCH, aggregate=SUM)
    assert "counted: state impossible" in job.run("plan", summed).output
    refused = job.run("submit", summed, "--wait", "--timeout", "15")
    assert refused.exit_code == 1
    assert "holds (count bigint), and would hold (sum bigint)" in " ".join(refused.output.split())

    renamed = job.written("tallied", first=SOURCE)
    shown = job.run("plan", renamed).output
    assert "counted: state dropped" in shown
    assert "tallied: state new" in shown
    refused = job.run("submit", renamed, "--wait", "--timeout", "15")
    assert refused.exit_code == 1
    assert "--drop-state counted" in " ".join(refused.output.split())
    job.counted()
