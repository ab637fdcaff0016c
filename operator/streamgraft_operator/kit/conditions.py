"""Conditions of resources: their names, and set without losing the time of the last transition."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from streamgraft_common.resources.base import Condition
from streamgraft_common.timestamps import to_rfc3339

ACCEPTED = "Accepted"
REFERENCES_FOUND = "ReferencesFound"
KAFKA_AVAILABLE = "KafkaAvailable"
SOURCES_AVAILABLE = "SourcesAvailable"
SUBMITTED = "Submitted"
READY = "Ready"
TIMED_OUT = "SubmissionTimedOut"
ROLLING_BACK = "RollingBack"
KAFKA_UNAVAILABLE = "KafkaUnavailable"
GRAPH_INVALID = "GraphInvalid"
POD_FORBIDDEN = "PodForbidden"
POD_CREATED = "PodCreated"
QUERY_SHARED = "QueryShared"

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True)
class State:
    """What a condition should say, without times."""

    type: str
    status: Status
    reason: str
    message: str = ""


def merged(
    existing: Sequence[Condition], states: Iterable[State], now: float, generation: int
) -> list[Condition]:
    """Return the conditions with `states` in them; `now` is in Unix seconds.

    `generation` is that of the spec that was looked at.
    """
    result = {condition.type: condition for condition in existing}
    for state in states:
        old = result.get(state.type)
        if old and _says(old, state, generation):
            continue
        result[state.type] = Condition(
            type=state.type,
            status=state.status,
            reason=state.reason,
            message=state.message,
            last_transition_time=(
                old.last_transition_time if old and old.status == state.status else to_rfc3339(now)
            ),
            observed_generation=generation,
        )
    return list(result.values())


def _says(condition: Condition, state: State, generation: int) -> bool:
    said = condition.status, condition.reason, condition.message, condition.observed_generation
    return said == (state.status, state.reason, state.message, generation)
