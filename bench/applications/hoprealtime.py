"""Records of any size from one PE to another, in real-time mode."""

from pyspark.sql import DataFrame

import streamgraft as sg

app = sg.Application("hoprealtime")

records = app.kafka_source(
    "records", topic="bench-in-hoprealtime", schema="id bigint, payload string"
)


@app.operator(inputs=records, real_time=True)
def sent(rows: DataFrame) -> DataFrame:
    """Pass on every record."""
    return rows


with app.parallel("far", key=["id"], max_width=1):

    @app.operator(inputs=sent, real_time=True)
    def measured(rows: DataFrame) -> DataFrame:
        """Tell of each record what it is, and leave its payload out."""
        return rows.selectExpr("id", "length(payload) AS size")

    app.kafka_sink("results", input=measured, topic="bench-out-hoprealtime")
