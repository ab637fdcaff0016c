"""Nexmark's queries of people: 3, 8, 11. Joins of streams, and sessions."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

PERSON = (
    "id bigint, name string, email_address string, city string, state string, date_time timestamp"
)
AUCTION = (
    "id bigint, item_name string, initial_bid bigint, seller bigint, category bigint,"
    " date_time timestamp, expires timestamp"
)
BID = "auction bigint, bidder bigint, price bigint, date_time timestamp"
_LATE = "4 seconds"
_WINDOW = "10 seconds"

app = sg.Application("nexmark-people", trigger_seconds=1.0)
persons = app.kafka_source("persons", topic="persons", schema=PERSON)
auctions = app.kafka_source("auctions", topic="auctions", schema=AUCTION)
bids = app.kafka_source("bids", topic="bids", schema=BID)


@app.operator(inputs=persons)
def people(persons: DataFrame) -> DataFrame:
    """Persons by the key of the region."""
    return persons.withColumnRenamed("id", "person")


@app.operator(inputs=auctions)
def offers(auctions: DataFrame) -> DataFrame:
    """Auctions by who sells."""
    return auctions.withColumnRenamed("id", "auction").withColumnRenamed("seller", "person")


@app.operator(inputs=bids)
def bidders(bids: DataFrame) -> DataFrame:
    """Bids by who bids."""
    return bids.select(F.col("bidder").alias("person"), "date_time")


with app.parallel("by-person", key="person", max_width=4, autoscaling=sg.Autoscaling(max_width=4)):

    @app.operator(inputs=[offers, people])
    def q3(offers: DataFrame, people: DataFrame) -> DataFrame:
        """Local items: who sells what of one category in three states."""
        near = people.where("state in ('OR', 'ID', 'CA')")
        chosen = offers.where("category = 10").select("person", "auction")
        joined = chosen.join(near, "person")
        return joined.select("person", "name", "city", "state", "auction")

    @app.operator(inputs=[offers, people])
    def q8(offers: DataFrame, people: DataFrame) -> DataFrame:
        """New people who offer something in the ten seconds in which they came."""
        came = people.withWatermark("date_time", _LATE).select(
            "person", "name", F.window("date_time", _WINDOW).alias("came")
        )
        offered = offers.withWatermark("date_time", _LATE).select(
            F.col("person").alias("seller"),
            "auction",
            F.window("date_time", _WINDOW).alias("offered"),
        )
        same = (F.col("person") == F.col("seller")) & (F.col("came") == F.col("offered"))
        joined = came.join(offered, same)
        return joined.select("person", "name", F.col("came.start").alias("window_start"), "auction")

    @app.operator(inputs=bidders)
    def q11(bidders: DataFrame) -> DataFrame:
        """Bids of each user's session, which ends when more than ten seconds pass without one."""
        sessions = F.session_window("date_time", _WINDOW)
        counts = bidders.withWatermark("date_time", _LATE).groupBy("person", sessions).count()
        return counts.select(
            "person",
            F.col("count").alias("bid_count"),
            F.col("session_window.start").alias("start_time"),
            F.col("session_window.end").alias("end_time"),
        )

    for name, query in {"q3": q3, "q8": q8, "q11": q11}.items():
        app.kafka_sink(f"{name}-out", input=query, topic=f"nexmark-{name}", key=["person"])
