"""Why a signal has no value: a result, not an exception, so that nobody turns it into a zero."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """What kind of trouble it is, in the CamelCase of Kubernetes' reasons."""

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
    """A signal without a value; `message` is for people and says what is missing."""

    reason: Reason
    message: str


def not_finite(inputs: Mapping[str, float]) -> NotReady | None:
    """Return why these named inputs can't be computed with, or None if all are finite."""
    if all(map(math.isfinite, inputs.values())):
        return None
    bad = (item for item in inputs.items() if not math.isfinite(item[1]))
    listed = ", ".join(f"{name} is {value}" for name, value in bad)
    return NotReady(Reason.NOT_A_NUMBER, listed)
