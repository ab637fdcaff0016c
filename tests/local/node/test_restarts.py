"""Restart policies and back-off."""

import pytest

from streamgraft_local.node.restarts import delay_seconds, restarts


@pytest.mark.parametrize(
    ("policy", "after_success", "after_failure"),
    [("Always", True, True), ("OnFailure", False, True), ("Never", False, False)],
)
def test_policies(policy: str, after_success: bool, after_failure: bool) -> None:
    assert restarts(policy, 0) is after_success
    assert restarts(policy, 1) is after_failure


def test_delays_double_up_to_a_minute() -> None:
    delays = [delay_seconds(streak) for streak in (1, 2, 3, 6, 7, 8, 1000)]
    assert delays == [1, 2, 4, 32, 60, 60, 60]
