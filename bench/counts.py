"""Whether each record had its effect once, told by counts of the records of each key.

Records have the keys in turn, and each result the number of records of its key so far.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from bench.traffic import Arrival, Arrivals


class Progress:
    """How many records the results that have arrived are about."""

    def __init__(self, arrivals: Arrivals) -> None:
        self.at = 0.0
        """When the last result came, Unix time."""
        self._arrivals = arrivals
        self._seen = 0
        self._counts: dict[str, int] = {}

    def records(self) -> int:
        """Look at what has come since the last call; return how many records there are results
        of."""
        fresh = self._arrivals.items[self._seen :]
        self._seen += len(fresh)
        for item in fresh:
            self.at = item.at
            self._counts[item.key] = max(item.count, self._counts.get(item.key, 0))
        return sum(self._counts.values())


def wrong(keys: Sequence[str], sent: int, results: Iterable[Arrival]) -> tuple[int, int]:
    """Return how many of the `sent` records are in no result, and how many came twice: in a count,
    or as a result that was there before."""
    every = Counter((item.key, item.count) for item in results)
    counts: dict[str, int] = {}
    for key, count in every:
        counts[key] = max(count, counts.get(key, 0))
    whole, rest = divmod(sent, len(keys))
    missing = [whole + (number < rest) - counts.get(key, 0) for number, key in enumerate(keys)]
    again = sum(times - 1 for times in every.values())
    return sum(max(0, few) for few in missing), sum(max(0, -few) for few in missing) + again
