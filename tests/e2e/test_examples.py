"""Examples as jobs: what they generate goes in, and what their results must be comes out."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from examples.enrichment import orders, service
from examples.ledger import payments
from examples.nexmark import events
from examples.sending import Record
from examples.sensors import trace
from examples.wordcount import lines
from streamgraft.testing.live import LiveJob
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_SECONDS = 180.0

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Example:
    """An application, what it gets, and how many rows of which topic are judged."""

    application: str
    records: list[Record]
    topic: str
    count: int
    judge: Callable[[Rows], None]


@contextmanager
def customer_service() -> Iterator[None]:
    """Run the service at the address that the application expects."""
    command = [sys.executable, "-m", "examples.enrichment.service", "--port", "8090"]
    with subprocess.Popen([*command, "--delay", "0.01"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.terminate()


def bids() -> Example:
    """Every bid in euros."""
    given = list(events.events(1_000))
    prices = sorted(round(it["price"] * 0.908, 2) for topic, it in given if topic == "bids")

    def judge(rows: Rows) -> None:
        assert sorted(row["price"] for row in rows) == prices

    return Example("nexmark/bids.py", given, "nexmark-q1", len(prices), judge)


def auctions() -> Example:
    """Bids with their auction: a join of streams."""
    given = list(events.events(1_000))
    wanted = {it["id"] for topic, it in given if topic == "auctions" and it["category"] == 10}
    joined = [it for topic, it in given if topic == "bids" and it["auction"] in wanted]

    def judge(rows: Rows) -> None:
        keys = sorted((row["auction"], row["bidder"], row["price"]) for row in rows)
        assert keys == sorted((it["auction"], it["bidder"], it["price"]) for it in joined)

    return Example("nexmark/auctions.py", given, "nexmark-q20", len(joined), judge)


def people() -> Example:
    """Who sells nearby."""
    given = list(events.events(2_000))
    near = {it["id"] for t, it in given if t == "persons" and it["state"] in ("OR", "ID", "CA")}
    sold = sorted(
        it["id"]
        for topic, it in given
        if topic == "auctions" and it["category"] == 10 and it["seller"] in near
    )

    def judge(rows: Rows) -> None:
        assert sorted(row["auction"] for row in rows) == sold

    return Example("nexmark/people.py", given, "nexmark-q3", len(sold), judge)


def sensors() -> Example:
    """Nearly all that is found was put there."""
    given = list(trace.readings(4_000))
    wanted = {reading["id"] for reading, off in given if off}

    def judge(rows: Rows) -> None:
        assert len({row["id"] for row in rows} & wanted) >= 0.9 * len(wanted)

    records: list[Record] = [("readings", reading) for reading, _ in given]
    return Example("sensors/app.py", records, "anomalies", len(wanted), judge)


def enrichment() -> Example:
    """Each order once, with its customer's discount."""
    given = list(orders.orders(1_000))

    def judge(rows: Rows) -> None:
        assert sorted(row["id"] for row in rows) == list(range(len(given)))
        for row in rows:
            assert row["discount"] == service.customer(row["customer"])["discount"]

    records: list[Record] = [(orders.TOPIC, order) for order in given]
    return Example("enrichment/app.py", records, "invoices", len(given), judge)


def ledger() -> Example:
    """Each payment that moves money once."""
    given = list(payments.payments(500))
    wanted = booked(given)

    def judge(rows: Rows) -> None:
        assert sorted(row["id"] for row in rows) == wanted

    records: list[Record] = [(payments.TOPIC, payment) for payment in given]
    return Example("ledger/app.py", records, "booked", len(wanted), judge)


def booked(given: Rows) -> list[int]:
    """Return the payments that move money."""
    return [payment["id"] for payment in given if payment["cents"]]


def test_the_files_of_the_ledger(cluster: Cluster, tmp_path: Path) -> None:
    """What its sink makes final with the cuts of its region has each payment once."""
    given = list(payments.payments(500))
    source = (EXAMPLES / "ledger" / "app.py").read_text()
    application = tmp_path / "app.py"
    application.write_text(source.replace("/tmp/streamgraft-ledger", str(tmp_path)))
    with LiveJob.of(cluster, application) as job:
        job.write(payments.TOPIC, given)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := final(tmp_path)) != booked(given):
            assert time.monotonic() < deadline, len(found)
            time.sleep(1.0)


def final(folder: Path) -> list[int]:
    """Return the payments in the ledger's files."""
    files = (folder / "final").glob("*")
    return sorted(
        json.loads(line)["id"] for file in files for line in file.read_text().splitlines()
    )


def wordcount() -> Example:
    """Frequent words, with counts that go up."""
    words = {"stream", "graft", "pods", "that", "scale"}

    def judge(rows: Rows) -> None:
        assert {row["word"] for row in rows} <= words | {"themselves", "without", "pause"}
        assert all(row["count"] >= 10 for row in rows)

    return Example("wordcount/app.py", list(lines.lines(400)), "frequent-words", 5, judge)


@pytest.mark.parametrize("make", [bids, auctions, people, sensors, enrichment, ledger, wordcount])
def test_an_example_as_a_job(make: Callable[[], Example], cluster: Cluster) -> None:
    """With the HPA that it asks for; that of the one that wants advice only does nothing."""
    example = make()
    beside = customer_service() if make is enrichment else nullcontext()
    with beside, LiveJob.of(cluster, EXAMPLES / example.application) as job:
        for topic in sorted(
            {operator.kafka.topic for operator in job.adl.operators if operator.kafka}
        ):
            if rows := [value for name, value in example.records if name == topic]:
                job.write(topic, rows)
        settle = 0.0 if make in (sensors, wordcount) else 3.0  # these go on writing updates
        example.judge(job.read(example.topic, example.count, PATIENCE_SECONDS, settle))
        policy = "Disabled" if make is wordcount else "Max"
        assert asyncio.run(policies(cluster, job.namespace)) == [policy]


async def policies(cluster: Cluster, namespace: str) -> list[str]:
    """Return by which policy each HPA of a namespace widens."""
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        found = (await client.get(AUTOSCALER.path(namespace)))["items"]
    return [item["spec"]["behavior"]["scaleUp"]["selectPolicy"] for item in found]
