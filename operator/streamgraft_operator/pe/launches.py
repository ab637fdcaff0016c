"""When a PE has to be launched again, and how long to wait after failures. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgraft_common.backoff import doubled
from streamgraft_common.content import Change, Content, classify
from streamgraft_common.resources import (
    ProcessingElementSpec,
    ProcessingElementStatus,
    Stopped,
)
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator.pe.step import PodView, launched

FIRST_BACKOFF_SECONDS = 1.0
"""Between two starts of a PE that fails; twice as long each time in a row. What ran longer than
that is launched again at once."""
LONGEST_BACKOFF_SECONDS = 60.0
STABLE_SECONDS = 600.0
"""A pod that ran this long was no crash loop: counting starts anew (as the kubelet does)."""


@dataclass(frozen=True)
class Relaunch:
    """A reason to raise the launch count."""

    reason: str
    failed: bool = False
    """Whether the pod ended by itself, so that the next launch has to wait."""
    deleting: bool = False
    """Whether the pod is being deleted, however it ended."""


@dataclass(frozen=True)
class RestartPolicy:
    """After which ends of its pod a PE is launched again."""

    failed: bool = True
    completed: bool = True
    deleted: bool = True

    @classmethod
    def of(cls, spec: ProcessingElementSpec) -> "RestartPolicy":
        """Return the policy that a PE's settings amount to."""
        settings = spec.effective()
        failed = settings.restart_failed_pod
        return cls(
            failed=spec.restartable if failed is None else failed,
            completed=settings.restart_completed_pod is not False,
            deleted=settings.restart_deleted_pod is not False,
        )

    def allows(self, cause: Relaunch) -> bool:
        """Return whether a launch follows.

        `deleted` decides for every pod that is being deleted where the other two say no: how it
        ended says little then.
        """
        if cause.deleting and self.deleted:
            return True
        match cause.reason:
            case "PodFailed":
                return self.failed
            case "PodCompleted":
                return self.completed
            case "PodDeleted":
                return self.deleted
            case _:
                return True


def resumed(stopped: Stopped, policy: RestartPolicy, version: str) -> Relaunch | None:
    """Return why a stopped PE is launched again, or None if it stays as it is.

    `version`: content and settings of the PE now.
    """
    if stopped.version != version:
        return Relaunch("GraphChanged")
    cause = Relaunch(stopped.reason)
    return cause if policy.allows(cause) else None


def relaunch(
    status: ProcessingElementStatus,
    content: Content,
    pods: Sequence[PodView],
    pe_uid: str,
    settings_id: str = "",
) -> Relaunch | None:
    """Return why the current launch is over, or None if it is not.

    `content` and `settings_id` (of its own settings) are the PE's. A pod whose content can become
    that in place is kept.
    """
    if status.launch_count < 1:
        return Relaunch("Created")
    current = launched(pods, pe_uid, status.launch_count, status.pod)
    if current is None:
        return Relaunch("PodDeleted") if status.pod else None
    if current.phase == "Failed":
        return Relaunch("PodFailed", failed=True, deleting=current.deleting)
    if current.phase == "Succeeded":
        return Relaunch("PodCompleted", failed=True, deleting=current.deleting)
    if current.deleting:
        return Relaunch("PodDeleted")
    if classify(Content.parse(current.content_id), content) is Change.RESTART:
        return Relaunch("GraphChanged")
    if current.settings_id != settings_id:
        return Relaunch("SettingsChanged")
    return None


def raised(
    status: ProcessingElementStatus, cause: Relaunch, ran_seconds: float, now: float
) -> ProcessingElementStatus:
    """Return the status of the next launch. `ran_seconds`: how long the last pod was up, below 0 if
    the clock of its node is ahead of ours."""
    ran_seconds = max(ran_seconds, 0.0)
    failures = 0
    not_before = None
    if cause.failed:
        failures = 1 if ran_seconds >= STABLE_SECONDS else status.failure_count + 1
        apart = doubled(FIRST_BACKOFF_SECONDS, failures - 1, LONGEST_BACKOFF_SECONDS)
        not_before = to_rfc3339(now + apart - ran_seconds) if ran_seconds < apart else None
    return status.model_copy(
        update={
            "launch_count": status.launch_count + 1,
            "launch_reason": cause.reason,
            "failure_count": failures,
            "not_before": not_before,
            "stopped": None,
            "pod": None,
            "phase": "Pending",
            "message": "its pod does not exist yet",
        }
    )


def not_before(status: ProcessingElementStatus, now: float) -> float:
    """Return the Unix time before which no pod may be created. Whoever wrote it may have had
    another clock."""
    noted = from_rfc3339(status.not_before) if status.not_before else 0.0
    return min(noted, now + LONGEST_BACKOFF_SECONDS)
