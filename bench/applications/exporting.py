"""Publishes numbered records for another job."""

import streamgraft as sg

app = sg.Application("exporting", trigger_seconds=0.1)
records = app.kafka_source("records", topic="bench-in-shared", schema="id bigint, key string")
app.export(records, properties={"shared": 1})
