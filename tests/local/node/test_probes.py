"""The probe state machine."""

import pytest

from streamgraft_local.node.probes import ProbeState, ProbeTiming


def verdicts(results: str, **probe: int) -> list[bool | None]:
    """Return the verdict after each result ("+" success, "-" failure)."""
    timing, state, found = ProbeTiming.of(probe), ProbeState(), []
    for result in results:
        state = state.after(result == "+", timing)
        found.append(state.healthy)
    return found


def test_defaults_are_kubernetes_own() -> None:
    assert ProbeTiming.of({}) == ProbeTiming(0, 10, 1, 1, 3)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("+", [True]),
        ("--", [None, None]),
        ("---", [None, None, False]),
        ("+--+--", [True] * 6),
        ("+---+", [True, True, True, False, True]),
    ],
)
def test_failures_count_in_a_row(results: str, expected: list[bool | None]) -> None:
    assert verdicts(results) == expected


def test_successes_count_in_a_row() -> None:
    expected = [None, None, None, True]
    assert verdicts("+-++", successThreshold=2, failureThreshold=2) == expected
