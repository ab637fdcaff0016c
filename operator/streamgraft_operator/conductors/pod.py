"""The pod conductor: a PE's pod exists exactly when everything it needs does. Pure.

At most one pod of a PE may run, since a PE's shards have one writer: the pod of a new launch is
created only after all older ones have ended.
"""

from dataclasses import dataclass
from typing import Literal

KEPT_FAILED_PODS = 3
"""A crash loop must not fill the namespace."""

PodPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]


@dataclass(frozen=True)
class PodView:
    """One pod that carries a PE's label."""

    name: str
    launch: int
    pe_uid: str
    """uid of the ProcessingElement it was made for: names come back, uids don't."""
    phase: PodPhase
    scheduled: bool
    deleting: bool
    content_id: str = ""
    """Content id that the PE had when the pod was made."""
    settings_id: str = ""
    """Hash of the PE's own settings then."""

    @property
    def alive(self) -> bool:
        """Whether its process may be running."""
        return self.scheduled and self.phase not in ("Succeeded", "Failed")


@dataclass(frozen=True)
class PeLaunch:
    """A ProcessingElement, as far as its pod depends on it. Times are Unix seconds."""

    uid: str
    launch_count: int
    content_id: str
    config_content_id: str | None
    """Content id of its ConfigMap; None: there is none."""
    bundle_exists: bool
    pool_lacks: str = ""
    """What the HostPool that it is placed in still needs; '' if nothing, or if it is in none."""
    pod: str | None = None
    """Name of the launch's pod, once there was one."""
    not_before: float = 0.0
    stopped: bool = False
    """Whether the restart policies allow no further launch."""
    keep_failed: bool = False
    """Whether failed pods stay, for someone to look at."""


@dataclass(frozen=True)
class PodDecision:
    """What to do with the pods of a PE. `waiting_for` says why none is created yet."""

    delete: tuple[str, ...]
    create: bool = False
    waiting_for: str = ""
    again_in: float | None = None
    """Seconds after which to look again, for nothing else will announce it."""


def step(pe: PeLaunch | None, pods: tuple[PodView, ...], now: float) -> PodDecision:
    """Return what to delete and whether to create the pod of the current launch.

    `pe` is None if the ProcessingElement is gone or going: then all its pods go.
    """
    if pe is None:
        return PodDecision(delete=tuple(pod.name for pod in pods if not pod.deleting))
    current = [pod for pod in pods if pod.pe_uid == pe.uid and pod.launch == pe.launch_count]
    kept = _kept(pe, pods)
    others = [pod for pod in pods if pod not in current and pod not in kept]
    delete = tuple(pod.name for pod in others if not pod.deleting)
    if pe.stopped:
        failed = (pod.name for pod in current if pod.phase == "Failed" and not pod.deleting)
        return PodDecision(delete if pe.keep_failed else (*delete, *failed))
    if current or pe.launch_count < 1:
        return PodDecision(delete)
    if others:
        # Also one that has ended: it may have the name of the new one, and it is soon gone.
        return PodDecision(delete, waiting_for=f"pod {others[0].name} to end")
    if pe.pod is not None:  # it is gone: whether another launch follows is not decided here
        return PodDecision(delete)
    if pe.config_content_id is None or pe.config_content_id != pe.content_id:
        return PodDecision(delete, waiting_for="its ConfigMap")
    if not pe.bundle_exists:
        return PodDecision(delete, waiting_for="the ConfigMap of the bundle")
    if pe.pool_lacks:
        return PodDecision(delete, waiting_for=pe.pool_lacks)
    if now < pe.not_before:
        seconds = pe.not_before - now
        return PodDecision(delete, waiting_for="the back-off after failures", again_in=seconds)
    return PodDecision(delete, create=True)


def _kept(pe: PeLaunch, pods: tuple[PodView, ...]) -> list[PodView]:
    """Return the failed pods of earlier launches that stay."""
    if not pe.keep_failed:
        return []
    failed = [
        pod
        for pod in pods
        if pod.phase == "Failed" and pod.pe_uid == pe.uid and pod.launch < pe.launch_count
    ]
    return sorted(failed, key=lambda pod: pod.launch)[-KEPT_FAILED_PODS:]
