"""The job conductor: phases and messages follow from conditions."""

import pytest

from streamgraft_common.conditions import BUNDLE_MISSING
from streamgraft_operator.job.step import JobView, message, phase, step
from streamgraft_operator.kit.conditions import (
    ACCEPTED,
    KAFKA_AVAILABLE,
    ROLLING_BACK,
    SUBMITTED,
    State,
    merged,
)

ACCEPT = State(ACCEPTED, "True", "Planned")
ALL = JobView(wanted_pes=3, missing=(), not_ready={})


def amounts_to(*states: State, view: JobView | None = None) -> tuple[str, str]:
    """Return phase and message of a job with these states and, if given, that view."""
    decided = step(view).states if view else ()
    conditions = merged([], [*states, *decided], now=0.0, generation=1)
    return phase(conditions), message(conditions)


def test_healthy_when_all_pes_are_ready() -> None:
    assert amounts_to(ACCEPT, view=ALL) == ("Healthy", "all 3 PEs are ready")


def test_submitted_when_all_exists() -> None:
    view = JobView(3, (), {"j-0": "the pod is starting", "j-1": ""})
    assert step(view).ready_pe_count == 1
    assert amounts_to(ACCEPT, view=view) == (
        "Submitted",
        "1 of 3 PEs are ready: waiting for j-0 (the pod is starting), j-1",
    )


def test_submitting_while_something_is_missing() -> None:
    missing = tuple(f"Service j-{number}" for number in range(5))
    now, text = amounts_to(ACCEPT, view=JobView(5, missing, {}))
    assert now == "Submitting"
    assert text == "waiting for Service j-0, Service j-1, Service j-2 and 2 more"


def test_submitted_job_that_lacks_something_is_unhealthy_only() -> None:
    view = JobView(2, ("Service j-0",), {}, submitted=True, waiting_seconds=1e6)
    now, text = amounts_to(ACCEPT, view=view)
    assert now == "Submitted"
    assert text == "2 of 2 PEs are ready: waiting for Service j-0"


def test_submission_that_takes_too_long_failed() -> None:
    view = JobView(1, ("Service j-0",), {}, waiting_seconds=301.0)
    now, text = amounts_to(ACCEPT, view=view)
    assert now == "Failed"
    assert text.startswith("not submitted within 300 s: Service j-0")


def test_submission_that_is_rolled_back_failed() -> None:
    rolling = State(SUBMITTED, "Unknown", ROLLING_BACK, "made anew")
    assert amounts_to(ACCEPT, rolling) == ("Failed", "made anew")


@pytest.mark.parametrize(("reason", "expected"), [(BUNDLE_MISSING, "Pending"), ("X", "Failed")])
def test_rejected(reason: str, expected: str) -> None:
    assert amounts_to(State(ACCEPTED, "False", reason, "why")) == (expected, "why")


def test_running_job_stays_submitted_while_its_brokers_are_away() -> None:
    away = State(KAFKA_AVAILABLE, "False", "KafkaUnavailable", "Kafka does not answer")
    assert amounts_to(ACCEPT, away) == ("Submitting", "Kafka does not answer")
    assert amounts_to(ACCEPT, away, view=ALL) == ("Healthy", "Kafka does not answer")


def test_new_job_is_pending() -> None:
    assert amounts_to() == ("Pending", "")


def test_transition_time_stays_while_the_status_does() -> None:
    first = merged([], [State("A", "True", "R")], now=1.0, generation=1)
    same = merged(first, [State("A", "True", "Other", "text")], now=2.0, generation=2)
    other = merged(same, [State("A", "False", "R")], now=3.0, generation=2)
    times = [conditions[0].last_transition_time for conditions in (first, same, other)]
    assert times[0] == times[1] != times[2]
    assert same[0].message == "text"
