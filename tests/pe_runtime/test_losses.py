"""Records that retention deleted are counted and reported, not forgotten with the lag."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.producers import idempotent

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime import query_logs
from streamgraft_pe_runtime.brokers import Bounds
from streamgraft_pe_runtime.log_starts import (
    RecordsLost,
    count_deleted,
    note_read_up,
    pass_deleted,
)
from streamgraft_pe_runtime.losses import Gap, Losses
from streamgraft_pe_runtime.protocol.failures import explained

KEY = ("t", 0)


def test_each_record_is_lost_once() -> None:
    """The log's start moves on while the position stands still; then records are read again."""
    losses = Losses()
    counted = [
        losses.count(Gap(KEY, *each)) for each in ((10, 5), (10, 30), (10, 30), (10, 45), (50, 45))
    ]
    assert counted == [0, 20, 0, 15, 0]
    assert losses.count(Gap(KEY, 60, 70)) == 10
    unreported = losses.unreported()
    assert (unreported, losses.unreported()) == ({"t": 45}, {})
    losses.put_back(unreported)
    losses.count(Gap(("t", 1), 0, 5))
    assert losses.unreported() == {"t": 50}


def delete(stage: Any, before: int) -> None:
    """Delete what is before an offset of the first partition, as retention does."""
    admin = AdminClient({"bootstrap.servers": stage.cluster.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(stage.input, 0, before)]).values()
    deleted.result(30)


A, B = {"a": {"0": 7, "1": 3}}, {"b": {"0": 5}}


def port_of(topic: str, *, may_lose: bool = False) -> InputPort:
    """Return an input that is a stream of another PE."""
    return InputPort(
        port=0,
        stream=topic,
        topic=topic,
        partitions=2,
        bootstrap_servers="x",
        operator="f",
        may_lose=may_lose,
    )


def begin(checkpoint: Path, committed: bool) -> None:
    """Write the log of a query with two sources, of one batch or none."""
    for number, source in enumerate((A, B)):
        (checkpoint / "sources" / str(number)).mkdir(parents=True)
        (checkpoint / "sources" / str(number) / "0").write_text(f"\0v1\n{json.dumps(source)}")
    for log, text in (
        ("offsets", f"v1\n{{}}\n{json.dumps(A)}\n{json.dumps(B)}"),
        ("commits", "v1\n{}"),
    ):
        if committed:
            (checkpoint / log).mkdir()
            (checkpoint / log / "4").write_text(text)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("read", [None, (6, 10), (7, 9), (7, 10)])
@pytest.mark.parametrize("may_lose", [False, True])
def test_positions_before_a_log_s_start(
    tmp_path: Path, committed: bool, read: tuple[int, int] | None, may_lose: bool
) -> None:
    """Nothing is lost where it is known that no records were."""
    begin(tmp_path, committed)
    if read is not None:
        note_read_up(tmp_path, ("a", 0), *read)
        note_read_up(tmp_path, ("b", 0), 5, 6)
    ports = [port_of("a"), port_of("b")]
    starts = {("a", 0): 10, ("a", 1): 3, ("b", 0): 2}
    brokers: Any = SimpleNamespace(
        bounds=lambda keys: Bounds({key: (starts[key], 99) for key in keys}),
    )
    lost: list[Gap] = []

    def note(port: InputPort, gap: Gap) -> bool:
        lost.append(gap)
        return may_lose

    refused = read != (7, 10) and not may_lose
    expected: Any = pytest.raises(RecordsLost) if refused else nullcontext()
    with expected as error:
        pass_deleted(tmp_path, ports, lambda _: brokers, note)
    found = query_logs.read(tmp_path)
    assert found
    assert lost == ([] if read == (7, 10) else [Gap(("a", 0), 7, 10)])
    assert found.sources == ((A, B) if refused else ({"a": {"0": 10, "1": 3}}, B))
    assert not refused or explained(str(error.value)).reason == "RecordsLost"


def test_micro_batches_leave_out_by_themselves_what_is_counted(tmp_path: Path) -> None:
    begin(tmp_path, committed=True)
    ports = [port_of(name, may_lose=name == "a") for name in "ab"]
    found = {("a", 0): (10, 99), ("a", 1): (3, 99), ("b", 0): (7, 99)}
    brokers: Any = SimpleNamespace(bounds=lambda _: Bounds(found))
    lost: list[Gap] = []

    def note(port: InputPort, gap: Gap) -> bool:
        lost.append(gap)
        return port.may_lose

    count_deleted(tmp_path, ports[:1], lambda _: brokers, note)
    assert lost == [Gap(("a", 0), 7, 10)]
    left = query_logs.read(tmp_path)
    assert left
    assert left.sources == (A, B)


def test_what_can_not_be_counted_keeps_no_micro_batches_from_their_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers that only Java's clients may talk to, and a partition that does not answer. A query
    in real time has to know."""
    begin(tmp_path, committed=True)
    known: Any = SimpleNamespace(bounds=lambda _: Bounds({}, failed={("b", 0): "no leader"}))
    lost: list[Gap] = []

    def note(port: InputPort, gap: Gap) -> bool:
        lost.append(gap)
        return True

    def brokers(servers: str) -> Any:
        if servers == "x":
            raise KafkaException("brokers at x are not watched: see the log")
        return known

    ports = [port_of("a"), port_of("b").model_copy(update={"bootstrap_servers": "y"})]
    count_deleted(tmp_path, ports, brokers, note)
    assert (lost, len(caplog.messages)) == ([], 2)
    assert "of a before it is read is not counted: brokers at x are not" in caplog.messages[0]
    assert "of b, partitions [0], before it is read is not counted: no lea" in caplog.messages[1]
    with pytest.raises(KafkaException, match="brokers at x"):
        pass_deleted(tmp_path, ports, brokers, note)


@pytest.mark.integration
@pytest.mark.parametrize("stage", ["real time"], indirect=True)
async def test_a_partition_whose_records_have_all_gone(stage: Any, output: Any) -> None:
    """Only the end of a transaction was not read; in real-time mode Spark stands still before it,
    and fails for ever when it is gone."""
    producer = Producer(
        {"bootstrap.servers": stage.cluster.bootstrap_servers, "transactional.id": stage.input}
    )
    producer.init_transactions(30)

    def write(number: int) -> None:
        producer.begin_transaction()
        producer.produce(stage.input, f'{{"key": "k0", "n": {number}}}', "k0", partition=0)
        producer.commit_transaction(30)

    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    write(0)
    output.until(lambda values: values == {"k0": [0]}, 60)
    key = f'partition="0",topic="{stage.input}"'
    deadline = time.monotonic() + 60
    while f"streamgraft_pe_committed_offset{{{key}}} 2.0" not in (await pe.get("/metrics"))[1]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    delete(stage, 2)
    await pe.until(lambda status: status.shards["0"].state == "Failed")
    await pe.running(0, 1)
    write(1)
    output.until(lambda values: values == {"k0": [0, 1]}, 60)
    assert (await pe.status()).lost is None
    assert f"streamgraft_pe_lost_records_total{{{key}}} 0.0" in (await pe.get("/metrics"))[1]


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.parametrize("stage", ["plain", "real time"], indirect=True)
async def test_records_that_retention_deleted_are_counted_and_reported(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """Thirty of forty records go while no PE runs; the next one's query does not go on silently,
    and once the job says so it goes on, all the same with a count."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    source = load(100)
    output.until(lambda values: sum(map(len, values.values())) > 100)
    sent = source.stop()
    output.until(lambda values: sum(map(len, values.values())) >= sum(sent.values()))
    assert await pe.terminate() == 0

    producer = idempotent(stage.cluster.bootstrap_servers)
    ends: list[int] = []
    for number in range(40):
        producer.produce(
            stage.input,
            f'{{"key": "k40", "n": {number}}}',
            "a",
            partition=0,
            on_delivery=lambda error, message: ends.append((message.offset() or 0) + 1),
        )
    producer.flush(30)
    delete(stage, max(ends) - 10)

    again = await stage.start(1, [0, 1])
    status = await again.until(lambda report: bool(report.lost and report.lost.topics))
    assert status.lost.topics == {stage.input: 30}
    assert status.lost.last_at
    metrics = (await again.get("/metrics"))[1]
    labels = f'partition="0",topic="{stage.input}"'
    assert f"streamgraft_pe_lost_records_total{{{labels}}} 30.0" in metrics
    if not stage.real_time:  # whose query does not start, so nothing measures what waits
        found = f"streamgraft_pe_lag_records{{{labels}}} 10.0"
        assert found in metrics, "what is gone does not wait"
    failed = await again.until(lambda status: status.shards["0"].state == "Failed")
    assert "failOnDataLoss" in failed.shards["0"].message
    output.read(5)
    assert sum(map(len, output.values.values())) == sum(sent.values())

    stage.may_lose = True
    await again.replan(stage.metadata(), "2")
    total = sum(sent.values()) + 10
    output.until(lambda values: sum(map(len, values.values())) >= total, 60)
    assert output.values["k40"] == [*range(30, 40)]
    assert (await again.status()).lost.topics == {stage.input: 30}


@pytest.mark.integration
async def test_what_a_job_goes_on_without_is_counted(stage: Any, output: Any) -> None:
    """The first batch is over before anybody has looked where the log begins."""
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    producer = idempotent(stage.cluster.bootstrap_servers)

    def write(numbers: range) -> None:
        for n in numbers:
            producer.produce(stage.input, f'{{"key": "k0", "n": {n}}}', "k0", partition=0)
        assert producer.flush(30) == 0

    write(range(10))
    output.until(lambda values: values == {"k0": [*range(10)]}, 60)
    assert await pe.terminate() == 0
    write(range(10, 50))
    delete(stage, 40)
    stage.may_lose = True
    again = await stage.start(1, [0, 1])
    await again.running(0, 1)
    output.until(lambda values: values == {"k0": [*range(10), *range(40, 50)]}, 60)
    status = await again.until(lambda report: bool(report.lost and report.lost.topics))
    assert status.lost.topics == {stage.input: 30}
