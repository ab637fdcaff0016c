"""The job conductor: from what exists to the state that users see, as pure functions.

Submitting → Submitted when every resource of the job exists → Healthy when every PE is ready.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamgraft_common.conditions import WITHOUT_BUNDLE, find, is_true
from streamgraft_common.resources.base import Condition
from streamgraft_common.text import listed
from streamgraft_operator.kit.conditions import (
    ACCEPTED,
    KAFKA_AVAILABLE,
    READY,
    REFERENCES_FOUND,
    ROLLING_BACK,
    SOURCES_AVAILABLE,
    SUBMITTED,
    TIMED_OUT,
    State,
)

SHOWN = 3
"""Names in a message that `kubectl get` shows in a column."""

Phase = Literal["Pending", "Submitting", "Submitted", "Healthy", "Failed"]


@dataclass(frozen=True)
class JobView:
    """What exists of a job."""

    wanted_pes: int
    missing: tuple[str, ...]
    """`<kind> <name>` of resources that should exist."""
    not_ready: Mapping[str, str]
    """PE → why it is not ready."""
    submitted: bool = False
    """Whether this generation of the spec was submitted before. It stays so: what is missing later
    (a new channel, something a user deleted) makes the job unhealthy, not unsubmitted."""
    waiting_seconds: float = 0.0
    """How long the submission has been going on."""
    timeout_seconds: float = 300.0


@dataclass(frozen=True)
class JobDecision:
    """What the job's status should say."""

    submission: State
    ready: State
    pe_count: int
    ready_pe_count: int

    @property
    def states(self) -> tuple[State, ...]:
        """All that is said of a spec that was accepted; of one that was not, what runs is ready."""
        return self.submission, self.ready

    @property
    def submitted(self) -> bool:
        """Whether all resources of the job exist, or did for this spec."""
        return self.submission.status == "True"


def step(view: JobView) -> JobDecision:
    """Return the state of a job."""
    ready = view.wanted_pes - len(view.not_ready)
    return JobDecision(
        submission=_submitted(view),
        ready=_ready(view, ready),
        pe_count=view.wanted_pes,
        ready_pe_count=ready,
    )


def _submitted(view: JobView) -> State:
    if view.submitted or not view.missing:
        return State(SUBMITTED, "True", "ResourcesExist", "all resources of the job exist")
    names = listed(view.missing, SHOWN)
    if view.waiting_seconds > view.timeout_seconds:
        message = f"not submitted within {view.timeout_seconds:g} s: {names} missing"
        return State(SUBMITTED, "False", TIMED_OUT, message)
    return State(SUBMITTED, "False", "ResourcesMissing", f"waiting for {names}")


def _ready(view: JobView, ready: int) -> State:
    if not view.not_ready and not view.missing:
        return State(READY, "True", "PesReady", f"all {view.wanted_pes} PEs are ready")
    reasons = [f"{name} ({why})" if why else name for name, why in view.not_ready.items()]
    waiting = f": waiting for {listed(reasons or view.missing, SHOWN)}"
    return State(
        READY, "False", "PesNotReady", f"{ready} of {view.wanted_pes} PEs are ready{waiting}"
    )


def phase(conditions: Sequence[Condition]) -> Phase:
    """Return the phase that the conditions amount to.

    A job that was submitted stays so while, say, its brokers are away: its PEs go on.
    """
    if is_true(conditions, SUBMITTED):
        ready = is_true(conditions, READY) and not _outdated(conditions)
        return "Healthy" if ready else "Submitted"
    accepted, submitted = find(conditions, ACCEPTED), find(conditions, SUBMITTED)
    if submitted and submitted.reason in (TIMED_OUT, ROLLING_BACK):
        return "Failed"
    if accepted and accepted.status == "False":
        return "Pending" if accepted.reason in WITHOUT_BUNDLE else "Failed"
    return "Submitting" if accepted else "Pending"


def _outdated(conditions: Sequence[Condition]) -> bool:
    """Return whether a spec was accepted, and nobody has looked yet whether its PEs are ready."""
    accepted, ready = find(conditions, ACCEPTED), find(conditions, READY)
    if accepted is None or accepted.status != "True" or ready is None:
        return False
    return (ready.observed_generation or 0) < (accepted.observed_generation or 0)


def message(conditions: Sequence[Condition]) -> str:
    """Return the first thing that is wrong, else that all is well."""
    for kind in (ACCEPTED, REFERENCES_FOUND, KAFKA_AVAILABLE, SOURCES_AVAILABLE, SUBMITTED, READY):
        condition = find(conditions, kind)
        if condition and condition.status != "True":
            return condition.message
    ready = find(conditions, READY)
    if _outdated(conditions):
        return "the new version was accepted, and PEs are told of it"
    return ready.message if ready else ""
