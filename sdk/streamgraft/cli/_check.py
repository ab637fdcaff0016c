"""One thing that `streamgraft doctor` looked at."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """What was seen of it, and what that means."""

    name: str
    state: Literal["good", "bad", "unknown"]
    text: str
    mend: str = ""
    """What to do about it."""
