"""When an ended container starts again, and after how long."""

from streamgraft_common.backoff import doubled

FIRST_DELAY_SECONDS = 1.0
"""The kubelet begins with 10 s; on a laptop somebody is waiting."""
MAX_DELAY_SECONDS = 60.0
STABLE_SECONDS = 600.0
"""After a run of this length the next delay is the first one again (as with the kubelet)."""


def restarts(policy: str, exit_code: int) -> bool:
    """Return whether a container that ended with this code starts again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def delay_seconds(streak: int) -> float:
    """Return the delay before a restart, after `streak` short runs in a row (1: the first)."""
    return doubled(FIRST_DELAY_SECONDS, max(streak - 1, 0), MAX_DELAY_SECONDS)
