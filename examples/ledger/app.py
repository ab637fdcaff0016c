"""A ledger: payments become lines in files, each line once, whatever dies.

Payments come from the topic `ledger-payments`. In a parallel region, keyed by account, they are
booked. A sink function puts the lines of each batch aside, and a consistent region makes them
final: with each cut the files of the batches that are in it move to `final`. The balances of
accounts go to the topic `balances`, what was booked also to `booked`.
"""

import json
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

PAYMENT = "id bigint, account string, cents bigint"

app = sg.Application("ledger", trigger_seconds=1.0)
folder = app.parameter("folder", default="/tmp/streamgraft-ledger")
payments = app.kafka_source("payments", topic="ledger-payments", schema=PAYMENT)


def staged(what: sg.Batch | sg.Cut) -> Path:
    """Return where batches of a shard of the sink wait for their cut."""
    return Path(folder.value) / "staged" / what.writer / what.incarnation


with app.parallel("accounts", key="account", max_width=8, autoscaling=sg.Autoscaling(max_width=4)):

    @app.operator(inputs=payments)
    def booked(payments: DataFrame) -> DataFrame:
        """Leave out what moves no money."""
        return payments.where("cents <> 0")

    @app.operator(inputs=booked, output_mode="update")
    def balances(booked: DataFrame) -> DataFrame:
        """Keep the balance of each account."""
        return booked.groupBy("account").agg(
            F.sum("cents").alias("cents"), F.count("*").alias("payments")
        )

    @app.sink(inputs=booked)
    def lines(rows: DataFrame, batch: sg.Batch) -> None:
        """Put the lines of a batch aside: a batch that comes again replaces its file."""
        text = "".join(json.dumps(row.asDict()) + "\n" for row in rows.orderBy("id").collect())
        if not text:
            return
        staged(batch).mkdir(parents=True, exist_ok=True)
        half = staged(batch) / f".{int(batch)}"
        half.write_text(text)
        half.replace(staged(batch) / str(int(batch)))


@app.on_commit(lines)
def publish(cut: sg.Cut) -> None:
    """Make final what is in the cut; what was made final before a crash is not there any more."""
    final = Path(folder.value) / "final"
    final.mkdir(parents=True, exist_ok=True)
    for file in sorted(staged(cut).glob("[0-9]*")):
        if int(file.name) <= cut.last_batch:
            file.replace(final / f"{cut.writer}-{cut.incarnation}-{file.name}.jsonl")


app.kafka_sink("balance", input=balances, topic="balances", key=["account"])
app.kafka_sink("journal", input=booked, topic="booked", key=["account"])
app.consistent_region("books", start=payments, period_seconds=10)
