"""Times of the week, as people say them: 22:00 to 02:00 on Fridays in Berlin."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class Period:
    """A time of the week."""

    start: str
    """HH:MM."""
    end: str
    """HH:MM; at or before the start: on the next day."""
    days: Collection[str]
    """Those of DAYS on which it starts; empty: all."""
    time_zone: str
    """IANA name."""

    def contains(self, now: float) -> bool:
        """Return whether a Unix time is in it. Raises ZoneInfoNotFoundError."""
        local = datetime.fromtimestamp(now, ZoneInfo(self.time_zone))
        begin, end = time.fromisoformat(self.start), time.fromisoformat(self.end)
        moment = local.time()
        if begin < end:
            return begin <= moment < end and self._starts_on(local)
        if moment >= begin:
            return self._starts_on(local)
        return moment < end and self._starts_on(local - timedelta(days=1))

    def _starts_on(self, local: datetime) -> bool:
        return not self.days or DAYS[local.weekday()] in self.days
