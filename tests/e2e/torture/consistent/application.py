"""Numbered records through a consistent region: counted by key, and written into a database once.

Counts and sums go to a topic. A sink function puts the records of its batches aside in an SQLite
database; cuts mark them as prepared, then make them final, each in one transaction.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

ROLL_BACK_ON: Literal["never", "failure"] = "never"
"""What edits change: whether shards go on from their own last batch, or all go back to the cut."""

DATABASE = "records.sqlite"
TABLES = """
create table if not exists staged
    (writer text, incarnation text, batch int, id int, key text, prepared int default 0);
create table if not exists final
    (place integer primary key autoincrement, id int, key text, prepared int);
"""
LOCK_SECONDS = 60.0
"""A process that is frozen within a transaction holds up all others for as long."""

# Small batches: a backlog is several of them, and kills hit some.
app = sg.Application(
    "cuts", trigger_seconds=0.5, spark_conf={"spark.streamgraft.maxOffsetsPerTrigger": "1000"}
)
folder = app.parameter("folder", default="/tmp/streamgraft-cuts")
records = app.kafka_source("records", topic="cuts-in", schema="id bigint, key string")


@contextmanager
def transaction() -> Iterator[sqlite3.Connection]:
    """Connect, and commit at the end of the block."""
    database = sqlite3.connect(
        Path(folder.value) / DATABASE, LOCK_SECONDS, isolation_level="IMMEDIATE"
    )
    with closing(database), database:
        database.execute("pragma synchronous = off")  # processes die here, no machine does
        yield database


def put_aside(batch: sg.Batch, rows: Iterable[tuple[int, str]]) -> None:
    """Keep the records of a batch until its cut; a batch that comes again replaces itself."""
    of_batch = (batch.writer, batch.incarnation, int(batch))
    with transaction() as database:
        database.execute(
            "delete from staged where writer = ? and incarnation = ? and batch = ?", of_batch
        )
        database.executemany(
            "insert into staged (writer, incarnation, batch, id, key) values (?, ?, ?, ?, ?)",
            [(*of_batch, *row) for row in rows],
        )


with app.parallel("work", key=["key"], width=1, max_width=2):

    @app.operator(inputs=records, output_mode="update")
    def totals(rows: DataFrame) -> DataFrame:
        """Count the records of each key and sum their ids."""
        return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("id").alias("total"))

    @app.sink(inputs=records)
    def lines(rows: DataFrame, batch: sg.Batch) -> None:
        """Put the records of a batch aside."""
        if found := [(row["id"], row["key"]) for row in rows.collect()]:
            put_aside(batch, found)


@app.on_prepare(lines)
def look(cut: sg.Cut) -> None:
    """Mark what is in a cut that is not complete yet."""
    with transaction() as database:
        database.execute(
            "update staged set prepared = 1 where writer = ? and incarnation = ? and batch <= ?",
            (cut.writer, cut.incarnation, cut.last_batch),
        )


@app.on_commit(lines)
def publish(cut: sg.Cut) -> None:
    """Make final what is in a complete cut; what a commit before did is not there any more."""
    in_cut = "from staged where writer = ? and incarnation = ? and batch <= ?"
    of_cut = (cut.writer, cut.incarnation, cut.last_batch)
    with transaction() as database:
        database.execute(
            "insert into final (id, key, prepared)"
            f" select id, key, prepared {in_cut} order by batch, rowid",
            of_cut,
        )
        database.execute(f"delete {in_cut}", of_cut)


app.kafka_sink("results", input=totals, topic="cuts-out", key=["key"], partitions=3, apart=True)
app.consistent_region(
    "all",
    start=records,
    period_seconds=8,
    drain_timeout_seconds=120,
    roll_back_on=ROLL_BACK_ON,
)
