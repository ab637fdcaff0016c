"""The parts of a run that decide something: its end, the HPA's words, the manifest, settings."""

from pathlib import Path

import pytest

from examples.flights.demo import settings_of
from examples.flights.ending import SETTLE_SECONDS, STALLED_SECONDS, Ending
from examples.flights.observation import Pod, hpa_message, hpa_metric, neighbours, quantity
from examples.flights.settings import Settings


def test_over_when_complete_and_narrow() -> None:
    """Not before the replay is over, nor before the last flight, nor while it is wide."""
    ending = Ending(total=100)
    assert not ending.over(1, replayed=False, processed=100, widths={1})
    assert not ending.over(2, replayed=True, processed=99, widths={1})
    assert not ending.over(3, replayed=True, processed=100, widths={1, 3})
    assert ending.over(4, replayed=True, processed=100, widths={1})


def test_over_when_stuck() -> None:
    """Lost flights and an idle HPA must not keep us here for ever."""
    ending = Ending(total=100)
    assert not ending.over(10, replayed=True, processed=50, widths={1})
    assert not ending.over(9 + STALLED_SECONDS, replayed=True, processed=50, widths={1})
    assert ending.over(11 + STALLED_SECONDS, replayed=True, processed=50, widths={1})
    ending = Ending(total=100)
    assert not ending.over(10, replayed=True, processed=100, widths={3})
    assert ending.over(11 + SETTLE_SECONDS, replayed=True, processed=100, widths={3})


def test_hpa_in_its_own_words() -> None:
    """What hinders it comes first, then what limits it."""
    able = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": ""}
    blind = {"type": "ScalingActive", "status": "False", "reason": "NoMetric", "message": "gone"}
    limited = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    assert hpa_message({"status": {}}) == "not seen yet"
    assert hpa_message({"status": {"conditions": [able]}}) == "ReadyForNewScale"
    assert hpa_message({"status": {"conditions": [able, limited]}}) == "TooManyReplicas"
    assert hpa_message({"status": {"conditions": [able, limited, blind]}}) == "NoMetric: gone"
    told = "unable to fetch metrics: demand of ns/r has no value: WarmingUp: not known yet"
    blind["message"] = told
    assert hpa_message({"status": {"conditions": [blind]}}) == "WarmingUp: not known yet"


def test_hpa_metric() -> None:
    """An average value is per replica; a value is the metric itself."""
    current = {"object": {"current": {"averageValue": "800m"}}}
    status = {"currentReplicas": 3, "currentMetrics": [current]}
    assert hpa_metric({"status": status}) == pytest.approx(2.4)
    status = {"currentReplicas": 3, "currentMetrics": [{"object": {"current": {"value": "2"}}}]}
    assert hpa_metric({"status": status}) == 2
    assert hpa_metric({"status": {"currentMetrics": None}}) is None


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("2500m", 2.5), ("1k", 1000), ("0", 0)])
def test_quantity(text: str, value: float) -> None:
    """Kubernetes' own way to write numbers."""
    assert quantity(text) == pytest.approx(value)


def test_neighbours_are_outside_of_regions() -> None:
    """Pods of channels come and go; the others are compared."""
    labels = {"streamgraft.io/pe": "flights-0"}
    metadata = {"name": "flights-0-1", "uid": "a", "labels": labels}
    outside = Pod.of({"metadata": metadata, "status": {"containerStatuses": [{"restartCount": 2}]}})
    assert outside == Pod("flights-0-1", "a", "flights-0", None, 2)
    inside = {**labels, "streamgraft.io/pe": "flights-1", "streamgraft.io/region": "enrich"}
    channel = Pod.of({"metadata": {**metadata, "labels": inside}})
    waiting = Pod.of({"metadata": {**metadata, "labels": {}}})
    assert neighbours([outside, channel, waiting]) == {"flights-0": outside}


def test_how_long_a_pod_took_to_start() -> None:
    """What tells one pod from another does not depend on it: readiness may come and go."""
    metadata = {"name": "p", "uid": "a", "labels": {}, "creationTimestamp": "2013-01-01T06:00:00Z"}

    def pod(status: str) -> Pod:
        since = "2013-01-01T06:00:30Z"
        ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
        return Pod.of({"metadata": metadata, "status": {"conditions": [ready]}})

    assert (pod("True").start_seconds, pod("False").start_seconds) == (30.0, None)
    assert pod("True") == pod("False")


def test_settings() -> None:
    """The whole year is two accelerated days, a part of it is one."""
    assert settings_of([]).clock.cycles == 2
    settings = settings_of(["--days", "3", "--cycle-seconds", "60", "--report", "here"])
    assert settings.clock.cycles == 1
    assert (settings.clock.duration_seconds, settings.report) == (60.0, Path("here"))
    assert Settings(base=Path("there")).cluster.home.root == Path("there/demo")
    with pytest.raises(SystemExit):
        settings_of(["--days", "0"])
