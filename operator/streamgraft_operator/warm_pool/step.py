"""The conductor of a job's warm pool: pods that wait for a PE to take them. Pure.

It is filled only while nothing else happens to the job: to start a driver costs a core for many
seconds, which a width change or a restart needs itself, up to the first batches of the new PEs.
So do PEs that are behind, for a while: some always are.
"""

from dataclasses import dataclass

from streamgraft_common.resources import PoolHeld
from streamgraft_operator.pe.step import WarmPodView

SETTLED_SECONDS = 3.0
"""How long a job has to be calm before its pool is filled."""
CATCH_UP_SECONDS = 180.0
"""How long a job has to be calm before its pool is filled although PEs are behind."""
FAILED_SECONDS = 60.0
"""How long a pod that ended by itself stays, and keeps its place from being filled."""


@dataclass(frozen=True)
class PoolView:
    """A job's pool and what its size depends on."""

    size: int
    """Pods wanted."""
    driver: str
    """What the pods must have fixed at their start (`Content.pool`)."""
    calm_seconds: float | None
    """For how long no width has changed and all shards have run; None: it is not so now."""
    pods: tuple[WarmPodView, ...]
    crowded: bool = False
    """Whether a PE of it finds no node with room: nothing that only waits is to keep that."""
    behind: bool = False
    """Whether PEs of it have more to do than they get done."""
    ended_seconds: tuple[tuple[str, float], ...] = ()
    """Pods that ended by themselves, and how long ago."""
    at_once: int | None = None
    """How many drivers may start at a time; None: all. Where CPU is short, the first is then warm
    when a wave comes, and not all of them half."""


@dataclass(frozen=True)
class PoolDecision:
    """What to do with the pool."""

    create: int
    delete: tuple[str, ...]
    again_in: float | None = None
    """Seconds after which to look again."""
    held: PoolHeld = ""
    """Why what is missing is not created now."""


def step(view: PoolView) -> PoolDecision:
    """Return how many pods to create, and which to delete."""
    fitting = sorted(
        (pod for pod in view.pods if pod.usable and pod.driver == view.driver),
        key=lambda pod: (not pod.ready, not pod.running, pod.name),
    )
    outdated = (pod.name for pod in view.pods if pod.usable and pod.driver != view.driver)
    failed = dict(view.ended_seconds)
    over = (name for name, seconds in failed.items() if seconds >= FAILED_SECONDS)
    size = 0 if view.crowded else view.size
    surplus = (pod.name for pod in fitting[size:])
    recent = [seconds for seconds in failed.values() if seconds < FAILED_SECONDS]
    missing = max(0, size - len(fitting) - len(recent))
    waits = [FAILED_SECONDS - max(recent)] if recent else []
    needed = CATCH_UP_SECONDS if view.behind else SETTLED_SECONDS
    settled = view.calm_seconds is not None and view.calm_seconds >= needed
    if missing and not settled and view.calm_seconds is not None:
        waits.append(needed - view.calm_seconds)
    held: PoolHeld = ""
    if view.crowded and view.size:
        held = "NoRoom"
    elif missing and not settled:
        calm = view.calm_seconds is not None and view.calm_seconds >= SETTLED_SECONDS
        held = "Behind" if calm else "NotCalm"
    elif size > len(fitting) + missing:
        held = "DriverFailed"
    if view.at_once is not None:
        missing = min(missing, max(0, view.at_once - sum(not pod.ready for pod in fitting)))
    return PoolDecision(
        create=missing if settled else 0,
        delete=(*outdated, *surplus, *over),
        again_in=min(waits, default=None),
        held=held,
    )
