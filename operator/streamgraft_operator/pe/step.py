"""The pod conductor: a PE's pod exists exactly when everything it needs does. Pure.

At most one pod of a PE may run, since a PE's shards have one writer: the pod of a new launch is
created only after all older ones have ended. It is a new one, or one of the job's warm pool: then
it gets the PE's labels, by a patch of the very version that had none. `status.pod` names the pod of
a launch, once; another one that has the launch's labels (two operators may overlap) has to go.
"""

from collections.abc import Iterable
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
    uid: str = ""

    @property
    def alive(self) -> bool:
        """Whether its process may be running."""
        return self.scheduled and not self.ended

    @property
    def ended(self) -> bool:
        """Whether its process has ended."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True)
class WarmPodView:
    """One pod of the job's warm pool."""

    name: str
    driver: str
    """What it fixed when it started (`Content.pool`)."""
    ready: bool
    usable: bool
    """Whether it runs, or will: not ended, not being deleted."""
    running: bool = False
    node: str = ""
    """Where it is; "": nowhere yet."""


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
    driver: str = ""
    """What a warm pod must have fixed at its start (`Content.pool`); "": none will do."""
    pool: tuple[WarmPodView, ...] = ()
    """The job's warm pool."""
    alike: tuple[str, ...] = ()
    """Nodes of the pods from which this one's is to be spread, of each pod."""
    pod: str | None = None
    """Name of the launch's pod, once there was one."""
    not_before: float = 0.0
    stopped: bool = False
    """Whether the restart policies allow no further launch."""
    keep_failed: bool = False
    """Whether failed pods stay, for someone to look at."""


@dataclass(frozen=True)
class PodDecision:
    """What to do with the pods of a PE."""

    delete: tuple[str, ...]
    """Names of pods."""
    create: bool = False
    adopt: str | None = None
    """Pod of the warm pool to adopt instead of creating one."""
    waiting_for: str = ""
    """Why none is created yet."""
    again_in: float | None = None
    """Seconds after which to look again, for nothing else will announce it."""


def step(pe: PeLaunch | None, pods: tuple[PodView, ...], now: float) -> PodDecision:
    """Return what to delete and how to get the pod of the current launch.

    `pe` is None if the ProcessingElement is gone or going: then all its pods go.
    """
    if pe is None:
        return PodDecision(delete=tuple(pod.name for pod in pods if not pod.deleting))
    current = launched(pods, pe.uid, pe.launch_count, pe.pod)
    kept = _kept(pe, pods)
    others = [pod for pod in pods if pod != current and pod not in kept]
    delete = tuple(pod.name for pod in others if not pod.deleting)
    if pe.stopped:
        over = current and current.phase == "Failed" and not current.deleting
        failed = (current.name,) if current and over else ()
        return PodDecision(delete if pe.keep_failed else (*delete, *failed))
    if current or pe.launch_count < 1:
        return PodDecision(delete)
    # A pod that has ended is in the way only if it may have the new one's name.
    if ahead := [pod for pod in others if not pod.ended or pod.pe_uid != pe.uid]:
        return PodDecision(delete, waiting_for=f"pod {ahead[0].name} to end")
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
    warm = warmest(pe)
    return PodDecision(delete, create=warm is None, adopt=warm.name if warm else None)


def launched(
    pods: Iterable[PodView], pe_uid: str, launch_count: int, named: str | None
) -> PodView | None:
    """Return the pod of a launch: the one that the PE names, while it names none the first."""
    found = [pod for pod in pods if pod.launch == launch_count and pod.pe_uid == pe_uid]
    return next((pod for pod in found if named in (None, pod.name)), None)


def warmest(pe: PeLaunch) -> WarmPodView | None:
    """Return the pod of the pool that is nearest to being warm, if any has the PE's driver.

    One that still starts is ahead of a new one, too. Of those that are as warm it is one on the
    node that has the fewest pods of the same region and stage: no scheduler sees an adoption.
    """
    fitting = [pod for pod in pe.pool if pod.usable and pod.driver == pe.driver]

    def order(pod: WarmPodView) -> tuple[bool, bool, int, str]:
        return not pod.ready, not pod.running, pe.alike.count(pod.node), pod.name

    return min(fitting, key=order, default=None)


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
