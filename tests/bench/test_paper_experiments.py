"""The scenarios of the autoscaling paper: its example, and a job that is restarted."""

import pytest

from bench import paper_experiments as paper
from streamgraft_autoscaler.replay.region import SimulatedRegion


def test_their_example_halves_the_parallelism_and_the_doubled_load_brings_it_back() -> None:
    found = paper.tried(paper.RULES, paper.IN_PLACE, paper.PAPER, 4)
    assert paper.widths(found)[:2] == [4, 2]
    doubled = [sample for sample in found.samples if sample.rate == 3200]
    assert doubled[-1].wanted == 4
    assert found.samples[-1].wanted == 2


def test_a_restarted_job_goes_on_while_it_writes_its_state_and_then_stands_still() -> None:
    model = paper.restarting(2)
    region = SimulatedRegion(model, 2)
    region.step(15.0, 100.0)
    region.want(4)
    seen = []
    for _ in range(20):
        before = region.processed
        region.step(15.0, 100.0)
        seen.append(region.processed - before)
    standing = seen.count(0.0) * 15
    # In whole steps: the last one of the downtime ends with work.
    assert model.pause_seconds - 15 <= standing <= model.pause_seconds
    assert seen[0] == pytest.approx(1500.0)
    assert region.width == 4
    assert sum(seen) == pytest.approx(20 * 1500.0)


def test_a_savepoint_in_progress_is_followed_by_the_width_wanted_last() -> None:
    region = SimulatedRegion(paper.restarting(8), 2)
    region.want(4)
    region.step(15.0, 100.0)
    region.want(3)
    for _ in range(10):
        region.step(15.0, 100.0)
    assert region.width == 3
