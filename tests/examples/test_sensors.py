"""The anomalies of a trace are found, and little else."""

from collections import defaultdict

import pytest
from tests.examples.conftest import Graphs, Records
from tests.examples.rotation import turn

from examples.sensors.app import READING, app
from examples.sensors.trace import CALM_READINGS, SENSORS, readings

COUNT = 4_000


def test_the_trace_is_calm_at_first_and_then_is_not() -> None:
    trace = list(readings(COUNT))
    assert trace == list(readings(COUNT))
    calm = SENSORS * CALM_READINGS
    assert not any(off for _, off in trace[:calm])
    assert sum(off for _, off in trace) > 20


@turn("sensors")
@pytest.mark.integration
def test_anomalies_are_found(graph_of: Graphs, records: Records) -> None:
    """In three batches, so that what is known of a sensor outlasts a batch."""
    trace = list(readings(COUNT))
    third = -(-COUNT // 3)
    batches = [
        records([reading for reading, _ in trace[start : start + third]], READING)
        for start in range(0, COUNT, third)
    ]
    results = graph_of(app).stream("anomalies", readings=batches)
    found = {
        row["id"]: row
        for batch in range(results.batches("anomalies"))
        for row in results.rows("anomalies", batch)
    }
    wanted = {reading["id"] for reading, off in trace if off}
    assert wanted <= found.keys()
    assert len(found.keys() - wanted) <= len(wanted) // 10
    levels = defaultdict(list)
    for reading, off in trace:
        if not off:
            levels[reading["sensor"]].append(reading["value"])
    for row in found.values():
        usual = levels[row["sensor"]]
        assert min(usual) <= row["expected"] <= max(usual)
