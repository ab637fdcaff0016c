"""Positions behind the end of a log: it is not the log that they are of, and its lag is not 0."""

from collections import Counter

from streamgraft_pe_runtime.brokers import Bounds
from streamgraft_pe_runtime.positions import Positions

_ROUNDS = 2
"""So often in a row it is seen before it is believed: a broker that has just become the leader may
not know the end yet."""


class Beyond:
    """What is seen of that, round by round."""

    def __init__(self) -> None:
        self._before: Positions = {}
        self._seen: Counter[tuple[str, int]] = Counter()

    def sort_out(self, bounds: Bounds, held: Positions) -> None:
        """Have partitions count as failed whose logs end before the positions that are held.

        Logs grow, and what was held before their ends were asked about can't be behind these.
        """
        for key, (_, end) in list(bounds.found.items()):
            position = self._before.get(key, -1)
            self._before[key] = held.get(key, -1)
            if position <= end:
                self._seen.pop(key, None)
                continue
            self._seen[key] += 1
            if self._seen[key] >= _ROUNDS:
                del bounds.found[key]
                bounds.failed[key] = (
                    f"its log ends at {end}, and the position is {position}: it is another topic of"
                    " that name, or has lost records"
                )
