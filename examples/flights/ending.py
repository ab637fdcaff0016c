"""When a run is over: all is in the result and the region is narrow again, or it is stuck."""

from dataclasses import dataclass, field

STALLED_SECONDS = 60.0
"""Without a further flight in the result after the replay, the rest will not come."""
SETTLE_SECONDS = 60.0
"""How long the HPA may take to narrow the region once there is no load."""


@dataclass
class Ending:
    """Told of every sample, it says when to stop. `total`: flights to be expected."""

    total: int
    _processed: int = field(default=-1, init=False)
    _progressed_at: float = field(default=0.0, init=False)

    def over(self, seconds: float, replayed: bool, processed: int, widths: set[int]) -> bool:
        """Return whether the run is over; `widths` are the one wanted and the one serving."""
        if processed != self._processed:
            self._processed, self._progressed_at = processed, seconds
        if not replayed:
            return False
        waited = seconds - self._progressed_at
        if processed >= self.total:
            return widths == {1} or waited > SETTLE_SECONDS
        return waited > STALLED_SECONDS
