"""Reads clicks and publishes them for other jobs (docs/use/import-export.md)."""

import streamgraft as sg

app = sg.Application("ingest")
clicks = app.kafka_source(
    "clicks", topic="shared-clicks", schema="user string, page string, millis bigint"
)
app.export(clicks, properties={"kind": "click", "version": 2, "tags": ["web", "eu"]})
