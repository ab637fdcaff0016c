"""Records that a real-time hop writes again, at least once, and those behind it that drop them."""

import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, driver, make_topic, read_all, rows, write

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime import arrangement, query
from streamgraft_pe_runtime.modes import comes_again
from streamgraft_pe_runtime.real_time import BATCH_SECONDS
from streamgraft_pe_runtime.repeats import HEADER
from streamgraft_pe_runtime.scan_order import EditedWays

pytestmark = pytest.mark.integration

RECORDS = 300
SLOTS = 8
LONG_BATCH_SECONDS = 60
"""So long that, also on a slow machine, a batch that is cut off has the records written before."""
PER_BATCH = 10
ROWS = 40


def twofold(frame: DataFrame) -> DataFrame:
    """Make two rows of each record."""
    return frame.select("key", F.explode(F.expr("array(2 * n, 2 * n + 1)")).alias("n"))


def counted(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(F.count("*").alias("count"), F.sum("n").alias("total"))


def halves(frame: DataFrame) -> DataFrame:
    """Read a stream twice, for some of its rows each."""
    return frame.where("n % 2 = 0").unionAll(frame.where("n % 2 = 1"))


def application(topic: str, *, real_time: bool | None) -> sg.Application:
    """A hop that may repeat records, perhaps another one, in real time or not, and a count.

    What follows it reads it twice, unless that is in real time, which Spark refuses.
    """
    app = sg.Application("repeats")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    made = app.operator(inputs=numbers, real_time=True, delivery="at_least_once")(twofold)
    if real_time is not None:
        with app.parallel("passing", key=["key"], max_width=1):
            again = app.operator(inputs=made, real_time=real_time, uid="passed")
            made = again((lambda frame: frame.where("n >= 0")) if real_time else halves)

    def counts(frame: DataFrame) -> DataFrame:
        return counted(frame if real_time else halves(frame))

    count = app.operator(inputs=made, output_mode="update")(counts)
    app.kafka_sink("totals", input=count, topic=f"{topic}-out", key=["key"], partitions=1)
    return app


@pytest.fixture
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver of its own, which has seen nothing before."""
    with driver(cluster, {}, slots=SLOTS) as session:
        yield session


def restart(job: Job, operator: str, *, cut_off: bool, seconds: float = BATCH_SECONDS) -> None:
    """Stop the query of the PE that has an operator, amid a batch or between two; start it anew."""
    pe = job.pe_of(operator)
    running = job.queries[pe.stage_name]
    running.stop(0 if cut_off else 30)
    name = f"{pe.stage_name}-{uuid.uuid4().hex[:4]}"
    job.queries[pe.stage_name] = query.start(
        job.plan(pe), running._checkpoint, seconds if pe.real_time else 0.2, name
    )


def until_counted(cluster: Cluster, topic: str, records: int) -> None:
    """Wait until the newest totals have the effect of each row; fail if they have one twice."""
    numbers = [*range(2 * records)]
    deadline = time.monotonic() + 60
    count = total = 0
    while (count, total) != (len(numbers), sum(numbers)):
        assert time.monotonic() < deadline, (count, total)
        newest = {row["key"]: row for row in rows(read_all(cluster, f"{topic}-out", 1))}
        count, total = (sum(row[name] for row in newest.values()) for name in ("count", "total"))
        assert count <= len(numbers)


def until_read(cluster: Cluster, job: Job, operator: str) -> None:
    """Wait until a batch of the PE that has an operator has ended where its inputs do."""
    deadline = time.monotonic() + 60
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "test"})

    def is_read_up() -> bool:
        positions = [
            (TopicPartition(topic, int(number)), position)
            for source in job.reports(operator)[-1]["sources"]
            for topic, partitions in source["endOffset"].items()
            for number, position in partitions.items()
        ]
        assert positions
        ends = [consumer.get_watermark_offsets(place, timeout=30) for place, _ in positions]
        return all(
            end and position >= end[1] for end, (_, position) in zip(ends, positions, strict=True)
        )

    while not job.reports(operator) or not is_read_up():
        assert time.monotonic() < deadline, job.reports(operator)[-1:]
        time.sleep(0.1)
    consumer.close()


def written(cluster: Cluster, job: Job) -> int:
    """Return how many records with an origin the hop has written."""
    (port,) = [port for port in job.pe_of("twofold").outputs if not port.external]
    messages = read_all(cluster, port.topic, port.partitions or 0)
    return sum(HEADER in dict(message.headers() or ()) for message in messages)


@pytest.mark.parametrize("real_time", [None, False, True])
def test_what_a_cut_off_batch_has_written_is_dropped_when_it_comes_again(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, real_time: bool | None
) -> None:
    """Also by a reader that was started anew, and where no key says to which partition they go."""
    topic = make_topic(cluster)
    job = Job(application(topic, real_time=real_time), spark, cluster, tmp_path)
    restart(job, "twofold", cut_off=False, seconds=LONG_BATCH_SECONDS)
    write(cluster, topic, range(RECORDS))
    until_counted(cluster, topic, RECORDS)
    restart(job, "twofold", cut_off=True, seconds=LONG_BATCH_SECONDS)
    assert comes_again(job.checkpoint(job.pe_of("twofold")))
    write(cluster, topic, range(RECORDS, 2 * RECORDS))
    until_counted(cluster, topic, 2 * RECORDS)
    restart(job, "counts", cut_off=False)
    restart(job, "twofold", cut_off=True)
    write(cluster, topic, range(2 * RECORDS, 3 * RECORDS))
    until_counted(cluster, topic, 3 * RECORDS)
    assert written(cluster, job) > 6 * RECORDS, "nothing came again"
    for pe in job.pes:  # what was counted twice is there then
        until_read(cluster, job, pe.operators[0])
    until_counted(cluster, topic, 3 * RECORDS)
    job.stop()
    assert not comes_again(job.checkpoint(job.pe_of("twofold")))


def test_rows_of_a_batch_that_was_cut_off_go_no_other_way(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Until one has run again, and ended: then they may, and none comes twice."""
    topic = make_topic(cluster)
    job = Job(application(topic, real_time=None), spark, cluster, tmp_path)
    write(cluster, topic, range(RECORDS))
    until_counted(cluster, topic, RECORDS)
    checkpoint = job.checkpoint(job.pe_of("twofold"))
    (way,) = arrangement.noted(checkpoint).outputs
    note = checkpoint / arrangement.NOTE
    job.queries[job.pe_of("twofold").stage_name].stop(0)
    note.write_text(note.read_text().replace(way, "7"))
    with pytest.raises(EditedWays):
        restart(job, "twofold", cut_off=True)
    note.write_text(note.read_text().replace('"7"', f'"{way}"').replace("#7", f"#{way}"))
    restart(job, "twofold", cut_off=True)
    until_read(cluster, job, "twofold")
    assert job.queries[job.pe_of("twofold").stage_name].stop(30)
    note.write_text(note.read_text().replace(way, "7"))
    restart(job, "twofold", cut_off=False)
    write(cluster, topic, range(RECORDS, 2 * RECORDS))
    until_counted(cluster, topic, 2 * RECORDS)
    job.stop()


def test_rows_are_counted_for_each_topic(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Whatever else becomes of a record: that may be edited while a batch is cut off."""
    topic = make_topic(cluster)
    app = sg.Application("parted")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
    made = app.operator(inputs=numbers, real_time=True, delivery="at_least_once")(twofold)
    app.split("parts", input=made, outputs={"even": "n % 2 = 0", "every": "true"})
    for name in ("even", "every"):
        count = app.operator(inputs=name, uid=f"of-{name}", output_mode="update")(counted)
        app.kafka_sink(f"{name}-out", input=count, topic=f"{topic}-{name}", partitions=1)
    job = Job(app, spark, cluster, tmp_path)
    write(cluster, topic, range(RECORDS))
    ports = {port.stream: port for port in job.pe_of("twofold").outputs}
    for name, rows_of_each in (("even", 1), ("every", 2)):
        found: list[str] = []
        deadline = time.monotonic() + 60
        while len(found) < RECORDS * rows_of_each:
            assert time.monotonic() < deadline, (name, len(found))
            messages = read_all(cluster, ports[name].topic, ports[name].partitions or 0)
            headers = [dict(message.headers())[HEADER].decode() for message in messages]
            found = [header.rpartition("/")[2] for header in headers]
        expected = [str(number + 1) for number in range(rows_of_each)] * RECORDS
        assert sorted(found) == sorted(expected)
    job.stop()


@pytest.mark.parametrize("seed", range(5))
def test_each_row_passes_once_whoever_writes_it(session: SparkSession, seed: int) -> None:
    """Owners that are cut off, and that go on for a while beside their successors, whose batches
    end elsewhere. A reader that begins anew anywhere, from a note of anywhere before, goes on as
    if it had not."""
    chance = random.Random(seed)
    queues = [owners(chance, lane) for lane in range(2)]
    log = [queue.pop(0) for _ in range(200) if (queue := chance.choice(queues))]
    log += queues[0] + queues[1]
    jvm: Any = session._jvm
    repeats = jvm.org.apache.spark.sql.kafka010.repeats
    newest = repeats.Newest.Empty()
    passed: dict[int, list[int]] = {0: [], 1: []}
    notes = [newest.text()]
    for offset, (lane, row) in enumerate(log):
        told = newest.after(offset, f"i/{lane}/in/0/{row // 2}/{row % 2 + 1}".encode())
        newest = told._1()
        if told._2():
            passed[lane].append(row)
        notes.append(newest.text())
    assert passed == {0: [*range(ROWS)], 1: [*range(ROWS)]}
    begun = chance.randrange(len(log))
    again = repeats.Newest.of(notes[begun])
    for offset, (lane, row) in enumerate(log[begun:], begun):
        again = again.after(offset, f"i/{lane}/in/0/{row // 2}/{row % 2 + 1}".encode())._1()
    assert sorted(again.text().splitlines()) == sorted(newest.text().splitlines())
    split = chance.randrange(begun, len(log))
    earlier = repeats.Newest.of(notes[split])
    later = repeats.Newest.at(split)
    for offset, (lane, row) in enumerate(log[split:], split):
        later = later.after(offset, f"i/{lane}/in/0/{row // 2}/{row % 2 + 1}".encode())._1()
    whole = later.behind(earlier)
    assert sorted(whole.text().splitlines()) == sorted(newest.text().splitlines())


def test_rows_of_a_former_version(session: SparkSession) -> None:
    """That counted those for other topics, too: rather a row twice than one lost."""
    jvm: Any = session._jvm
    repeats = jvm.org.apache.spark.sql.kafka010.repeats
    newest = repeats.Newest.of("7\nrun/1/in/0/50/4")
    assert (newest.next(), newest.since()) == (7, 0)
    passed = []
    for row in ("49/9", "50/1", "50/1", "50/2", "50/1", "51/1"):
        told = newest.after(newest.next(), f"2.100.run/1/in/0/{row}".encode())
        newest = told._1()
        passed += [row] if told._2() else []
    assert passed == ["50/1", "50/2", "51/1"]
    assert newest.text() == "13 0 0\n2.0.run/1/in/0/51/1"
    assert repeats.Newest.of(newest.text()).text() == newest.text()


def owners(chance: random.Random, lane: int) -> list[tuple[int, int]]:
    """Return the rows of a lane (lane, row), as several owners have written them."""
    found: list[tuple[int, int]] = []
    begin = 0  # where the last batch ended
    while begin < ROWS:
        late: list[tuple[int, int]] = []
        while chance.random() < 0.7:  # cut off; what it still sends comes amid its successor's
            rows = [(lane, row) for row in range(begin, chance.randint(begin, ROWS))]
            seen = chance.randint(0, len(rows))
            found += rows[:seen]
            late = rows[seen : chance.randint(seen, len(rows))]
        end = min(ROWS, begin + chance.randint(1, PER_BATCH))
        for row in range(begin, end):
            found.append((lane, row))
            if late and chance.random() < 0.5:
                found.append(late.pop(0))
        found += late
        begin = end
    return found
