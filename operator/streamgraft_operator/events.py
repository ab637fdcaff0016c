"""All texts that users see as Kubernetes Events: one function each, so that they stay alike."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event to be recorded on the object it is about."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def width_change_started(old: int, new: int) -> Event:
    """Tell that a region begins to change its width."""
    return Event("Normal", "WidthChangeStarted", f"changing the width from {old} to {new}")


def width_change_retargeted(old: int, new: int) -> Event:
    """Tell that the wanted width changed while channels were warming up."""
    return Event("Normal", "WidthChangeRetargeted", f"the wanted width is now {new}, not {old}")


def width_change_withdrawn(width: int) -> Event:
    """Tell that the wanted width went back to the serving one before any shard moved."""
    return Event("Normal", "WidthChangeWithdrawn", f"staying at width {width}; no shard moved")


def shards_moving(count: int, epoch: int) -> Event:
    """Tell that a new assignment was decided."""
    return Event("Normal", "ShardsMoving", f"moving {count} shards (assignment epoch {epoch})")


def width_serving(width: int, pause_seconds: float | None) -> Event:
    """Tell that all moved shards run under their new owners."""
    pause = "unknown" if pause_seconds is None else f"{pause_seconds:.2f} s"
    return Event("Normal", "WidthServing", f"width {width} serves; longest pause {pause}")


def width_change_finished(width: int) -> Event:
    """Tell that a width change is over and surplus channels are gone."""
    return Event("Normal", "WidthChangeFinished", f"the region has {width} channels")


def surge_failed(old: int, new: int, seconds: float, waiting_for: str) -> Event:
    """Tell that new channels did not become ready in time and the old width stays."""
    return Event(
        "Warning",
        "SurgeFailed",
        f"width {new} given up, {old} keeps serving: {waiting_for} not ready within {seconds:g} s;"
        " see the events of those pods, then set another width (or this one again) to retry",
    )
