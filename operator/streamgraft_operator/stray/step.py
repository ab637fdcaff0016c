"""Why the operator does nothing with an object that names a Job. Pure.

Source: the instance operator's design (003, "Cross-type dependencies").
"""

from collections.abc import Iterable

from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.resources.base import Condition
from streamgraft_operator.kit.conditions import ACCEPTED, State

JOB_FOUND = "JobFound"


def states(
    kind: str, job: str, *, exists: bool, labelled: bool, obstacle: str
) -> tuple[State, State]:
    """Return what the conditions JobFound and Accepted of an object should say.

    `job`: the Job that its spec names; `exists`: there is one of that name; `labelled`: the
    object's label names it, too; `obstacle`: why the spec can't be read.
    """
    accepted = State(ACCEPTED, "True", "Readable")
    if obstacle:
        message = f"the spec can't be read, so nothing is done with it: {obstacle}; correct that"
        accepted = State(ACCEPTED, "False", "Unreadable", message)
    if not exists:
        message = f"there is no Job {job} in this namespace: create it, or delete this {kind}"
        return State(JOB_FOUND, "False", "JobMissing", message), accepted
    if not labelled:
        message = (
            f"the operator makes the {kind}s of Job {job} itself, and marks them with the label"
            f" {names.LABEL_JOB}: delete this one"
        )
        return State(JOB_FOUND, "False", "NotOfItsJob", message), accepted
    return State(JOB_FOUND, "True", "JobFound"), accepted


def to_say(states: Iterable[State], said: list[Condition]) -> list[State]:
    """Return the states that matter: what is wrong, and what is right again."""
    return [state for state in states if state.status == "False" or find(said, state.type)]
