"""What one replica has learned, another one knows: through the exposition, as Prometheus would."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamgraft_autoscaler import Capacity, CapacitySample
from streamgraft_autoscaler.economy import Needs
from streamgraft_autoscaler.pause import MeasuredPause
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_metrics_adapter.learning.knowledge import PAUSES, Knowledge
from streamgraft_metrics_adapter.learning.learned_metrics import lines, parse
from streamgraft_metrics_adapter.prometheus.observations import RegionObservation
from streamgraft_metrics_adapter.prometheus.queries import Input
from streamgraft_metrics_adapter.prometheus.source import Row
from streamgraft_metrics_adapter.regions import Region, region_of

KEY = ("ns", "j", "r")
WINDOW = 60.0
NOW = 2e9
"""Later than all that is learned here."""


def region(*changes: dict[str, Any]) -> Region:
    """Return a region of one channel."""
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 8, "key": ["k"]}
    body = PARALLEL_REGION.manifest("j-r", "ns", spec)
    return region_of({**body, "status": {"width": 1, "changes": list(changes)}})


def change(
    epoch: int,
    finished_at: str | None = None,
    requested_at: float | None = None,
    pause: float = 3.0,
) -> dict[str, Any]:
    """Return a width change that paused a shard; it was asked for so many seconds after 1970."""
    return {
        "fromWidth": 2,
        "toWidth": 1,
        "epoch": epoch,
        "requestedAt": to_rfc3339(epoch if requested_at is None else requested_at),
        "finishedAt": finished_at,
        "pauseSecondsMax": pause,
    }


def seen(processed: float, busy: float, state: float = 1e6) -> RegionObservation:
    """Return what a refresh saw of a warm region of one channel."""
    observation = RegionObservation(values={Input.STATE_BYTES: state})
    observation.stage("0").values |= {
        Input.PROCESSING_RATE: processed,
        Input.BUSY_SLOTS: busy,
        Input.WARM_SLOTS: busy,
        Input.SLOTS: 1.0,
    }
    return observation


def scraped(knowledge: Knowledge, now: float, instance: str = "a") -> list[Row]:
    """Return what Prometheus has of a replica."""
    learned = lines(knowledge.samples(now), knowledge.pauses(), knowledge.needs())
    text = "\n".join([*learned, ""])
    return parsed(text, instance)


def parsed(text: str, instance: str) -> list[Row]:
    """Return the rows of an exposition."""
    return [
        ({"__name__": sample.name, "instance": instance, **sample.labels}, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def capacity(knowledge: Knowledge, now: float) -> Capacity:
    """Return what is known of the region's only stage."""
    return knowledge.of(region(), now).capacities["0"]


async def test_a_replica_that_starts_knows_what_the_others_know() -> None:
    first, second = Knowledge(WINDOW), Knowledge(WINDOW)
    for index, (rate, busy) in enumerate([(90.0, 0.9), (80.1, 0.7), (10.0, 0.1)]):
        first.learn(region(change(4)), seen(rate, busy), 1000.0 + 15 * index)
    await second.adopt(await parse(scraped(first, 1030.0), NOW))
    assert second.of(region(), 1030.0) == first.of(region(), 1030.0)
    # A day later the windows count no more, and are not exported.
    assert (await parse(scraped(first, 1030.0 + 86_401), NOW)).samples == []


async def test_a_replica_that_missed_a_refresh_catches_up_and_loses_nothing() -> None:
    ahead, behind = Knowledge(WINDOW), Knowledge(WINDOW)
    for knowledge, times in ((ahead, (1000.0, 1015.0, 1030.0)), (behind, (1000.0,))):
        for now in times:
            knowledge.learn(region(), seen(now / 10, 0.9), now)
    for knowledge in (ahead, behind):
        rows = [*scraped(ahead, 1030.0, "a"), *scraped(behind, 1030.0, "b")]
        await knowledge.adopt(await parse(rows, NOW))
    assert capacity(ahead, 1030.0) == capacity(behind, 1030.0)
    assert capacity(ahead, 1030.0).seen_at == 1030.0


async def test_a_scrape_bears_that_a_refresh_goes_on_meanwhile() -> None:
    first, second = Knowledge(WINDOW), Knowledge(WINDOW)
    second.learn(region(change(4)), seen(90.0, 0.9), 1000.0)
    found = await parse(scraped(second, 1000.0), NOW)
    first.learn(region(change(4)), seen(90.0, 0.9), 1000.0)
    elsewhere = ("ns", "j", "elsewhere")
    for sample, pause in zip(first.samples(1000.0), first.pauses(), strict=True):
        found.samples.append((elsewhere, *sample[1:]))
        found.pauses.append((elsewhere, *pause[1:]))
        await first.adopt(found)
    assert {key for key, *_ in first.pauses()} == {KEY, elsewhere}


async def test_a_pause_keeps_the_state_that_it_was_measured_with() -> None:
    first, second = Knowledge(WINDOW), Knowledge(WINDOW)
    first.learn(region(change(4)), seen(90.0, 0.9, state=1e6), 1000.0)
    await second.adopt(await parse(scraped(first, 1000.0), NOW))
    second.learn(region(change(4)), seen(90.0, 0.9, state=9e9), 2000.0)
    assert second.of(region(), 2000.0).pauses == (MeasuredPause(3.0, 1e6),)
    first.learn(region(*map(change, range(100))), seen(90.0, 0.9), 2000.0)
    assert [at for _, at, _ in first.pauses()] == list(range(100 - PAUSES, 100))


async def test_pauses_of_a_region_that_is_made_anew_count_before_those_of_the_old_one() -> None:
    """Its epochs begin anew, and what the old one showed is still in Prometheus."""
    old, new = Knowledge(WINDOW), Knowledge(WINDOW)
    before = [change(epoch, pause=60.0) for epoch in range(37, 37 + PAUSES)]
    old.learn(region(*before), seen(90.0, 0.9), 1000.0)
    await new.adopt(await parse(scraped(old, 1000.0), NOW))
    since = [change(epoch, requested_at=2000.0 + epoch, pause=1.0) for epoch in range(1, 6)]
    new.learn(region(*since), seen(90.0, 0.9), 3000.0)
    seconds = [pause.seconds for pause in new.of(region(), 3000.0).pauses]
    assert sorted(seconds) == [1.0] * 5 + [60.0] * (PAUSES - 5)


async def test_what_was_needed_is_remembered_by_all() -> None:
    first, second, apart = Needs(), Needs(), Needs()
    for now, width in ((1000.0, 5), (1100.0, 2), (1200.0, 3), (1300.0, 1)):
        first.observe(now, width, 1.0)
    second.observe(1300.0, 1, 1.0)
    rows = [*needs_scraped(first, "a"), *needs_scraped(second, "b")]
    found = await parse(rows, NOW)
    for needs in (first, second, apart):
        for place, since in found.since.items():
            needs.adopt(since, found.needed[place])
    assert first.past(1300.0) == second.past(1300.0) == apart.past(1300.0)
    assert first.past(1300.0).peaks == ((300.0, 5), (100.0, 3), (0.0, 1))
    assert first.past(1300.0).known_seconds == 300.0


async def test_a_gap_of_all_replicas_is_known_to_none() -> None:
    """One was read behind it, the other was last read before: neither has seen what was needed."""
    before, behind = Needs(), Needs()
    before.observe(1000.0, 3, 1.0)
    for needs in (before, behind):
        needs.observe(1100.0, 3, 1.0)
    for now in (9000.0, 9002.0):
        behind.observe(now, 2, 1.0)
    rows = [*needs_scraped(before, "a"), *needs_scraped(behind, "b")]
    knowledge, found = Knowledge(WINDOW), await parse(rows, NOW)
    await knowledge.adopt(found)
    for place, since in found.since.items():
        behind.adopt(since, found.needed[place])
    assert behind.past(9002.0).known_seconds == 2.0


def needs_scraped(needs: Needs, instance: str) -> list[Row]:
    """Return what Prometheus has of a replica that remembers this."""
    known = needs.known()
    assert known
    return parsed("\n".join([*lines([], [], [(KEY, *known)]), ""]), instance)


def test_a_window_that_reaches_into_the_last_change_teaches_no_replica() -> None:
    """Even if it started after the change, and so never saw that it was under way."""
    knowledge, ended = Knowledge(WINDOW), region(change(4, "1970-01-01T00:16:40Z"))
    knowledge.learn(ended, seen(90.0, 0.9), 1000.0 + WINDOW)
    assert knowledge.of(ended, 1000.0 + WINDOW).capacities == {}
    knowledge.learn(ended, seen(90.0, 0.9), 1001.0 + WINDOW)
    assert knowledge.of(ended, 1001.0 + WINDOW).capacities["0"].true_rate == pytest.approx(100)


async def test_what_is_not_ours_or_incomplete_is_left_out() -> None:
    good = dict(zip(("__name__", "instance"), ("streamgraft_learned_records", "a"), strict=True))
    place = {"namespace": "ns", "streams_job": "j", "region": "r", "stage": "0"}
    odd: list[Row] = [
        (good, 1.0),
        ({**good, **place}, 1.0),
        ({**good, **place, "band": "x", "width": "1"}, 1.0),
        ({**good, **place, "band": "0.5", "width": "1"}, 1.0),
        ({**good, **place, "changed_at": "1"}, 1.0),
        (
            {**good, **place, "__name__": "streamgraft_learned_pause_seconds", "changed_at": "x"},
            1.0,
        ),
    ]
    assert not await parse(odd, NOW)
    sample = CapacitySample(0.5, 1, 1e-17, 0.1 + 0.2, 1.7e9 + 0.1)
    text = "\n".join([*lines([(KEY, "0", sample)], [], []), ""])
    rows = parsed(text, "a")
    assert (await parse(rows, NOW)).samples == [(KEY, "0", sample)]
