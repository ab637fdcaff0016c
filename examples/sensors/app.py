"""Anomalies of sensors: readings far from what their sensor has shown lately.

Readings come from the topic `readings`. In a parallel region, keyed by sensor, a mean and a
variance are kept per sensor in which older readings count less (exponentially weighted). A reading
further from the mean than `limit` standard deviations is an anomaly, and goes to the topic
`anomalies`.
"""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import streamgraft as sg

READING = "id bigint, sensor string, at timestamp, value double"
ANOMALY = "id bigint, sensor string, at timestamp, value double, expected double, deviations double"
_STATE = "readings bigint, mean double, variance double"
_WEIGHT = 0.05
"""Of a new reading."""
_LEARNING = 30
"""Readings of a sensor before any of it can be an anomaly."""
_SMALLEST_DEVIATION = 1e-3

app = sg.Application("sensors", trigger_seconds=1.0)
limit = app.parameter("limit", default="6")
readings = app.kafka_source("readings", topic="readings", schema=READING)

with app.parallel("sensors", key="sensor", max_width=8, autoscaling=sg.Autoscaling(max_width=8)):

    @app.operator(inputs=readings)
    def anomalies(readings: DataFrame) -> DataFrame:
        """Return readings that are far off."""
        deviations = float(limit.value)

        def judge(
            key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
        ) -> Iterator[pd.DataFrame]:
            count, mean, variance = state.get if state.exists else (0, 0.0, 0.0)
            found = []
            rows = pd.concat(list(frames)).sort_values(["at", "id"])
            for row in rows.itertuples(index=False):
                off = row.value - mean
                far = abs(off) / max(variance**0.5, _SMALLEST_DEVIATION)
                if count >= _LEARNING and far > deviations:
                    found.append((row.id, row.sensor, row.at, row.value, mean, far))
                    continue
                weight = max(_WEIGHT, 1 / (count + 1))
                count, mean = count + 1, mean + weight * off
                variance = (1 - weight) * (variance + weight * off**2)
            state.update((count, mean, variance))
            yield pd.DataFrame(
                found, columns=["id", "sensor", "at", "value", "expected", "deviations"]
            )

        by_sensor = readings.groupBy("sensor")
        timeout = GroupStateTimeout.NoTimeout
        return by_sensor.applyInPandasWithState(judge, ANOMALY, _STATE, "append", timeout)

    app.kafka_sink("found", input=anomalies, topic="anomalies", key=["sensor"])
