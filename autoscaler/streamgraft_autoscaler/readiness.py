"""Why a signal has no value: never a zero, which an autoscaler would take for an idle region.

What computes raises `NotReadyError`; who keeps or serves results turns it into `NotReady` by
`outcome`, so that the signals of a region stand beside each other, each with its value or reason.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

Result = TypeVar("Result")


class Reason(StrEnum):
    """The kind of reason, in the CamelCase of Kubernetes' reasons."""

    NO_DATA = "NoData"
    """Something that the signal needs was never measured, or only partly."""
    WARMING_UP = "WarmingUp"
    """What a channel can process was not seen yet: the PEs are cold, or had no load so far."""
    STALE = "Stale"
    """It was measured, but too long ago."""
    RESET = "Reset"
    """A position stepped back within the window, so that rates over it are wrong."""
    NOT_A_NUMBER = "NotANumber"
    """An input is NaN or infinite."""
    UNDEFINED = "Undefined"
    """The inputs are sound, but the equation has no value for them."""
    INVALID = "Invalid"
    """What the region or its metrics say can't be computed with; the message is of the error."""
    RESIZING = "Resizing"
    """The region is changing its width: rates mix two widths."""
    BLACKOUT = "Blackout"
    """The region asks for no width changes at this time."""
    SOURCE_UNAVAILABLE = "PrometheusUnavailable"
    """The metrics store does not answer."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """A signal without a value."""

    reason: Reason
    message: str
    """For people: what is missing."""


class NotReadyError(Exception):
    """A signal can't be computed; `reason` and `message` are those of `NotReady`."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason.value}: {message}")
        self.reason = reason
        self.message = message

    @property
    def outcome(self) -> NotReady:
        """Return the reason as a result."""
        return NotReady(self.reason, self.message)


def outcome(compute: Callable[[], Result]) -> Result | NotReady:
    """Return what is computed, or why it has no value."""
    try:
        return compute()
    except NotReadyError as error:
        return error.outcome


def require_finite(inputs: Mapping[str, float]) -> None:
    """Raise NotReadyError unless all of these named inputs are finite."""
    bad = [f"{name} is {value}" for name, value in inputs.items() if not math.isfinite(value)]
    if bad:
        raise NotReadyError(Reason.NOT_A_NUMBER, ", ".join(bad))
