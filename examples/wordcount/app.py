"""Count words: one region, one split.

Lines of text come from the topic `lines` ({"text": "…"}). Words are counted in a parallel region,
keyed by word; frequent and rare words go their own ways.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamgraft as sg

app = sg.Application("wordcount", trigger_seconds=2.0)
shortest = app.parameter("shortest-word", default="3")

lines = app.kafka_source("lines", topic="lines", schema="text string")


@app.operator(inputs=lines)
def words(lines: DataFrame) -> DataFrame:
    """Split each line into its words, in lower case."""
    word = F.explode(F.split(F.lower("text"), r"\W+"))
    return lines.select(word.alias("word")).where(F.length("word") >= int(shortest.value))


advice = sg.Autoscaling(max_width=2, mode="advise")

with app.parallel("counting", key="word", max_width=4, autoscaling=advice):

    @app.operator(inputs=words, output_mode="update")
    def counts(words: DataFrame) -> DataFrame:
        """Count each word."""
        return words.groupBy("word").count()


frequent, rare = app.split(
    "frequency", input=counts, outputs={"frequent": "`count` >= 10", "rare": "`count` < 10"}
)
app.kafka_sink("frequent-words", input=frequent, topic="frequent-words", key=["word"])


@app.sink(inputs=rare)
def print_rare(batch: DataFrame, batch_id: int) -> None:
    """Show the rare words of each micro-batch in the PE's log."""
    batch.show()
