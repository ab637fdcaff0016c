"""Nexmark's queries of auctions: 5, 7, 17, 18, 20. They keep state by auction, or by window."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

BID = (
    "auction bigint, bidder bigint, price bigint, channel string, url string,"
    " date_time timestamp, extra string"
)
AUCTION = (
    "id bigint, item_name string, initial_bid bigint, seller bigint, category bigint,"
    " date_time timestamp, expires timestamp"
)
_LATE = "4 seconds"

app = sg.Application("nexmark-auctions", trigger_seconds=1.0)
bids = app.kafka_source("bids", topic="bids", schema=BID)
auctions = app.kafka_source("auctions", topic="auctions", schema=AUCTION)


@app.operator(inputs=auctions)
def items(auctions: DataFrame) -> DataFrame:
    """Auctions by the key of the region."""
    return auctions.withColumnRenamed("id", "auction").drop("date_time")


@app.operator(inputs=bids)
def q7(bids: DataFrame) -> DataFrame:
    """Highest bid of each ten seconds: over all auctions, so not in the region."""
    highest = F.max_by(
        F.struct("auction", "bidder", "price"), F.struct("price", "auction", "bidder")
    )
    by_time = bids.withWatermark("date_time", _LATE).groupBy(F.window("date_time", "10 seconds"))
    return by_time.agg(highest.alias("bid")).select(
        F.col("window.end").alias("window_end"), "bid.auction", "bid.bidder", "bid.price"
    )


with app.parallel(
    "by-auction", key="auction", max_width=4, autoscaling=sg.Autoscaling(max_width=4)
):

    @app.operator(inputs=bids)
    def counted(bids: DataFrame) -> DataFrame:
        """Bids of each auction in the last ten seconds, every two seconds: the half of query 5."""
        window = F.window("date_time", "10 seconds", "2 seconds")
        counts = bids.withWatermark("date_time", _LATE).groupBy(window, "auction").count()
        return counts.select(
            "auction", F.col("window.end").alias("window_end"), F.col("count").alias("num")
        )

    @app.operator(inputs=bids, output_mode="update")
    def q17(bids: DataFrame) -> DataFrame:
        """Statistics of each auction and day."""
        price = F.col("price")
        ranks = {
            "rank1_bids": price < 10_000,
            "rank2_bids": (price >= 10_000) & (price < 1_000_000),
            "rank3_bids": price >= 1_000_000,
        }
        return bids.groupBy("auction", F.date_format("date_time", "yyyy-MM-dd").alias("day")).agg(
            F.count("*").alias("total_bids"),
            *(F.count_if(condition).alias(name) for name, condition in ranks.items()),
            F.min(price).alias("min_price"),
            F.max(price).alias("max_price"),
            F.avg(price).alias("avg_price"),
            F.sum(price).alias("sum_price"),
        )

    @app.operator(inputs=bids, output_mode="update")
    def q18(bids: DataFrame) -> DataFrame:
        """The last bid of each bidder on each auction."""
        last = F.max_by(F.struct("price", "channel"), "date_time").alias("last")
        found = bids.groupBy("auction", "bidder").agg(last, F.max("date_time").alias("date_time"))
        return found.select("auction", "bidder", "last.price", "last.channel", "date_time")

    @app.operator(inputs=[bids, items])
    def q20(bids: DataFrame, items: DataFrame) -> DataFrame:
        """Bids with what is known of their auction, of one category."""
        return bids.join(items.where("category = 10"), "auction")

    for name, query in {"q17": q17, "q18": q18, "q20": q20}.items():
        app.kafka_sink(f"{name}-out", input=query, topic=f"nexmark-{name}", key=["auction"])


@app.operator(inputs=counted)
def q5(counted: DataFrame) -> DataFrame:
    """Hot items: the auction with most bids in the last ten seconds."""
    most = F.max_by(F.struct("auction", "num"), F.struct("num", -F.col("auction")))
    by_time = counted.withWatermark("window_end", "10 seconds").groupBy("window_end")
    return by_time.agg(most.alias("hot")).select("window_end", "hot.auction", "hot.num")


for name, query in {"q5": q5, "q7": q7}.items():
    app.kafka_sink(f"{name}-out", input=query, topic=f"nexmark-{name}", key=["auction"])
