"""Nexmark's queries of single bids: 0, 1, 2, 13, 14, 21, 22. None keeps state."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

BID = (
    "auction bigint, bidder bigint, price bigint, channel string, url string,"
    " date_time timestamp, extra string"
)
_EUROS = 0.908
_CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}

app = sg.Application("nexmark-bids", trigger_seconds=1.0)
bids = app.kafka_source("bids", topic="bids", schema=BID)

with app.parallel("each", key="auction", max_width=4, autoscaling=sg.Autoscaling(max_width=4)):

    @app.operator(inputs=bids)
    def q0(bids: DataFrame) -> DataFrame:
        """Pass-through: what reading and writing alone costs."""
        return bids

    @app.operator(inputs=bids)
    def q1(bids: DataFrame) -> DataFrame:
        """Currency conversion: prices in euros."""
        return bids.withColumn("price", F.round(F.col("price") * _EUROS, 2))

    @app.operator(inputs=bids)
    def q2(bids: DataFrame) -> DataFrame:
        """Selection: bids on every 123rd auction."""
        return bids.where("auction % 123 = 0").select("auction", "price")

    @app.operator(inputs=bids)
    def q13(bids: DataFrame) -> DataFrame:
        """Bounded side input: a table that does not change, by the auction's number."""
        side = bids.sparkSession.range(10).selectExpr("id as slot", "concat('slot ', id) as value")
        slot = F.col("auction") % 10
        joined = bids.join(F.broadcast(side), slot == F.col("slot"))
        return joined.select("auction", "bidder", "price", "date_time", "value")

    @app.operator(inputs=bids)
    def q14(bids: DataFrame) -> DataFrame:
        """Calculation: a converted price in a range, the kind of day, a count of letters."""
        price, hour = F.round(F.col("price") * _EUROS, 2), F.hour("date_time")
        kind = F.when(hour.between(8, 18), "day").when(hour.between(7, 19), "other")
        return bids.select(
            "auction",
            "bidder",
            price.alias("price"),
            kind.otherwise("night").alias("bid_time_type"),
            "date_time",
            (F.length("extra") - F.length(F.replace("extra", F.lit("c"), F.lit("")))).alias(
                "c_counts"
            ),
        ).where((F.col("price") > 1_000_000) & (F.col("price") < 50_000_000))

    @app.operator(inputs=bids)
    def q21(bids: DataFrame) -> DataFrame:
        """Add a channel's number: known ones have theirs, of others the URL says it."""
        known = F.create_map(*(F.lit(part) for pair in _CHANNELS.items() for part in pair))
        told = F.regexp_extract("url", r"(?:&|\?)channel_id=([^&]*)", 1)
        number = F.coalesce(known[F.lower("channel")], F.nullif(told, F.lit("")))
        chosen = bids.select("auction", "bidder", "price", "channel", number.alias("channel_id"))
        return chosen.where("channel_id is not null")

    @app.operator(inputs=bids)
    def q22(bids: DataFrame) -> DataFrame:
        """The first three folders of a URL."""
        parts = F.split(F.split_part("url", F.lit("?"), F.lit(1)), "/")
        folders = [parts[3 + number].alias(f"dir{number + 1}") for number in range(3)]
        return bids.select("auction", "bidder", "price", "channel", *folders)

    for name, query in {
        "q0": q0,
        "q1": q1,
        "q2": q2,
        "q13": q13,
        "q14": q14,
        "q21": q21,
        "q22": q22,
    }.items():
        app.kafka_sink(f"{name}-out", input=query, topic=f"nexmark-{name}", key=["auction"])
