"""A job is edited while records come, again and again: what it counts is what was sent.

Kinds of edits in the table of docs/use/edits.md that a running job accepts are made under load; the
page says which ones, and what shows the others. What came out is compared with a count of all that
was sent, and no sink has anything twice: counts of a key only rise, and a copy has each record
once.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.sdk.counting import Streams, repeated
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
least = app.parameter("least", default="1")
{first}
records = app.kafka_source("records", topic="{source}", schema="key string")

with app.parallel("work", key=["key"], width=1, max_width={max_width}):
{before}
    @app.operator(inputs={input}, output_mode="update", uid="{uid}")
    def {name}(rows):
        return rows.groupBy("key"){aggregate}

    @app.operator(inputs={name}, output_mode="update")
    def {scaled}(rows):
        rows = rows.where(F.col("count") >= int(least.value))
        return rows.withColumn("count", F.udf(lambda n: n * FACTOR, "bigint")("count"))

{last}{results}
app.kafka_sink("{scaled}-results", input={scaled}, topic="{sink}-scaled", key=["key"], apart=True)
"""
RESULTS = """
app.kafka_sink("{uid}-results", input={name}, topic="{sink}", key=["key"], apart=True)
"""
COUNT = ".count()"
AROUND = ".agg(F.count('*').alias('n')).where('n > 0').withColumnRenamed('n', 'count')"
SUM = ".agg(F.sum(F.length('key')).alias('count'))"
SINK = """
app.kafka_sink("more-results", input={name}, topic="{sink}-more", key=["key"], apart=True)
"""
BRANCH = """
    @app.operator(inputs={name})
    def doubled(rows):
        return rows.withColumn("count", F.col("count") * 2)

app.kafka_sink("more-results", input=doubled, topic="{sink}-doubled", key=["key"], apart=True)
"""
BEFORE = """
    @app.operator(inputs=records)
    def cleaned(rows):
        return rows.where("key is not null")
"""
BEHIND = """
@app.operator(inputs={name})
def unique(rows):
    return rows.dropDuplicates(["key", "count"])

app.kafka_sink("unique-results", input=unique, topic="{sink}-unique", key=["key"])
"""
SOURCE = """
other = app.kafka_source("other", topic="{source}", schema="key string, id bigint")
app.kafka_sink("copies", input=other, topic="{source}-copies")
"""


class Edited:
    """A job of one application, in one form after the other."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.streams = Streams(cluster, namespace)
        self.sink = f"{self.streams.source}-out"
        self.factor = 2
        self.sinks: list[str] = []
        """Topics of the sinks that it has."""
        self._ever: set[str] = set()
        """Topics of all sinks that it has had."""
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
        before: str = "",
        scaled: str = "scaled",
        trigger: float = 0.3,
        uid: str | None = None,
        max_width: int = 2,
        results: str = RESULTS,
    ) -> Path:
        """Write the application in a form."""
        values = {"source": self.streams.source, "sink": self.sink, "name": name}
        values |= {"uid": uid or name, "max_width": str(max_width), "before": before}
        values |= {"scaled": scaled, "input": "cleaned" if before else "records"}
        values |= {"aggregate": aggregate, "trigger": str(trigger), "factor": str(self.factor)}
        forms = {"first": first, "last": last, "results": results}
        parts = {part: form.format(**values) for part, form in forms.items()}
        self._file.write_text(APPLICATION.format(**values, **parts))
        return self._file

    def begun(self, form: Path) -> None:
        """Submit a form, and have it count some records."""
        result = self.run("submit", form, "--wait")
        assert result.exit_code == 0, result.output
        self._runs(form)
        self.counted()

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

    def submitted(self, form: Path, *options: str) -> None:
        """Submit a form under load."""
        with self.load():
            result = self.run("submit", form, "--wait", *options)
            assert result.exit_code == 0, result.output
            self._runs(form)

    def refused(self, form: Path, message: str) -> None:
        """Submit a form that can't be; the message must have this in it, on however many lines."""
        result = self.run("submit", form, "--wait", "--timeout", "15")
        assert result.exit_code == 1
        assert message in " ".join(result.output.split())

    def counted(self) -> None:
        """Wait until each sink has all that was sent, counted, and scaled as the code says now."""
        self.streams.send(EACH)
        factors = {"scaled": self.factor, "doubled": 2}
        for topic in self.sinks:
            if _is_copy(topic):
                self.streams.copied(topic)
            else:
                self.streams.counted(topic, factors.get(topic.rpartition("-")[2], 1))

    def is_exact(self) -> None:
        """Wait until each sink has all that was sent; none that there ever was has a repeat."""
        self.counted()
        for topic in sorted(self._ever):
            rows = self.streams.read(topic)
            if _is_copy(topic):
                ids = Counter(row["id"] for row in rows)
                assert [number for number, count in ids.items() if count > 1] == [], topic
            else:
                assert repeated((row["key"], row["count"]) for row in rows) == [], topic

    def _runs(self, form: Path) -> None:
        self.sinks = re.findall(r'kafka_sink\(.*topic="([^"]+)"', form.read_text())
        self._ever.update(self.sinks)

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


def _is_copy(topic: str) -> bool:
    return topic.endswith("-copies")


def _is_healthy(job: Object, generation: int) -> bool:
    conditions = {item["type"]: item for item in job["status"]["conditions"]}
    submitted = conditions["Submitted"]
    current = submitted["observedGeneration"] == generation and submitted["status"] == "True"
    return bool(current and job["status"]["phase"] == "Healthy")


@pytest.fixture
def job(cluster: Cluster, namespace: str, tmp_path: Path) -> Edited:
    """A job that has counted some records."""
    edited = Edited(cluster, namespace, tmp_path)
    edited.begun(edited.written())
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
    job.submitted(job.written())
    job.submitted(job.written("tallied", uid="counted"))
    job.is_exact()


def test_edits_keep_state_and_positions(job: Edited) -> None:
    """Stages that come, PEs that move to other ids, and edits that are refused."""
    job.submitted(job.written(last=BRANCH))
    job.submitted(job.written(first=SOURCE, last=BRANCH))

    summed = job.written(first=SOURCE, last=BRANCH, aggregate=SUM)
    assert "counted: state impossible" in job.run("plan", summed).output
    job.refused(summed, "holds (count bigint), and would hold (sum bigint)")
    job.refused(job.written(first=SOURCE, last=BRANCH, max_width=4), "or rename the region")

    job.refused(job.written("tallied", first=SOURCE), "new names, with which they start empty")
    job.is_exact()
    job.sink = f"{job.sink}-anew"  # where it counts all once more
    renamed = job.written("tallied", first=SOURCE, scaled="rescaled")
    shown = job.run("plan", renamed).output
    assert "counted: state dropped" in shown
    assert "tallied: state new" in shown
    job.refused(renamed, "--drop-state counted")
    job.is_exact()
    job.submitted(renamed, "--drop-state", "counted")
    job.is_exact()


def test_a_stage_is_split(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """At a stream that nobody has read so far."""
    job = Edited(cluster, namespace, tmp_path)
    job.begun(job.written(results=""))
    pods = job.pods()
    job.patched({"fusion": {"type": "legacy"}})
    assert len(job.pods()) == len(pods) + 1
    job.is_exact()


def test_what_stands_around_state(job: Edited) -> None:
    """Operators before and behind it, columns, parameters and resources; then state is removed."""
    job.submitted(job.written(before=BEFORE))
    job.submitted(job.written(before=BEFORE, aggregate=AROUND))
    job.submitted(job.written(aggregate=AROUND), "--param", "least=2")
    job.patched({"resources": {"requests": {"cpu": "1"}}})
    job.patched({"image": "another:1"})
    job.submitted(job.written(last=BEHIND))
    job.refused(job.written(), "--drop-state unique")
    job.submitted(job.written(), "--drop-state", "unique")
    job.is_exact()
