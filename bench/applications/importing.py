"""Copies what another job publishes."""

import streamgraft as sg

app = sg.Application("importing", trigger_seconds=0.1)
records = app.import_stream("records", subscription="shared == 1", schema="id bigint, key string")
app.kafka_sink("results", input=records, topic="bench-out-shared", key=["key"])
