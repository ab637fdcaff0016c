"""What a width change is expected to cost."""

import pytest

from streamgraft_autoscaler.pause import UNKNOWN_PAUSE_SECONDS, MeasuredPause, expected_pause


def test_nothing_measured_is_a_guess() -> None:
    assert expected_pause([], 1e9).seconds == UNKNOWN_PAUSE_SECONDS


def test_one_size_says_nothing_about_others() -> None:
    pauses = [MeasuredPause(seconds, 1e6) for seconds in (1.0, 9.0, 2.0)]
    assert expected_pause(pauses, 1e12).seconds == 2.0


def test_growth_with_the_state_is_learned() -> None:
    pauses = [MeasuredPause(0.5 + size * 1e-9, size) for size in (1e8, 1e9, 2e9)]
    found = expected_pause(pauses, 4e9)
    assert found.seconds == pytest.approx(4.5)
    assert found.seconds_per_byte == pytest.approx(1e-9)


def test_what_does_not_grow_with_the_state_is_the_median() -> None:
    pauses = [MeasuredPause(3.0 - size * 1e-9, size) for size in (0.0, 1e9, 2e9)]
    assert expected_pause(pauses, 1e10).seconds == 2.0
