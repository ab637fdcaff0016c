"""Whether both sinks have what a batch computation makes of the outside topic. Pure.

The topic's results are checked as `make torture` does: each is that of the first n records of its
key, in their order, and n goes up. A region that goes back to a cut writes what came behind it once
more, so n of a key may step back once for each rollback. The database must have each record once,
whatever went back.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.e2e.torture.verification import Input, Result


@dataclass(frozen=True)
class Line:
    """A record that the sink function has made final."""

    key: str
    id: int
    prepared: bool
    """Whether it was in a cut that was prepared before."""


@dataclass
class _Key:
    ids: list[int] = field(default_factory=list)
    """Of its records, in their order."""
    sums: list[int] = field(default_factory=list)
    """Of the first 1, 2, … ids."""
    pending: deque[Result] = field(default_factory=deque)
    """Results that came before the inputs that they tell of."""
    counted: int = 0
    """Records in the newest result."""
    steps_back: int = 0
    """In this round."""


class Comparison:
    """What came in, what should come out, and what did, so far."""

    def __init__(self) -> None:
        self.repeated = 0
        """Results that rollbacks have written once more."""
        self._keys: dict[str, _Key] = defaultdict(_Key)
        self._inputs: dict[int, str] = {}
        self._final: dict[int, str] = {}
        self._complete = 0
        """Records that were found to be in all results."""

    def take(
        self, inputs: Iterable[Input], results: Iterable[Result], lines: Iterable[Line]
    ) -> list[str]:
        """Add what has come, in the order of its partition or place; return what is wrong of it."""
        problems = []
        for item in inputs:
            if item.id in self._inputs:
                problems.append(f"the load itself wrote {item} twice")
            self._inputs[item.id] = item.key
            key = self._keys[item.key]
            key.ids.append(item.id)
            key.sums.append(item.id + (key.sums[-1] if key.sums else 0))
        for result in results:
            self._keys[result.key].pending.append(result)
        for key in self._keys.values():
            problems += self._counted(key)
        for line in lines:
            if line.id in self._final:
                problems.append(f"{line} is final twice")
            if not line.prepared:
                problems.append(f"{line} was made final without having been prepared")
            self._final[line.id] = line.key
        return problems

    def complete(self, sent: int) -> bool:
        """Return whether the first `sent` records have come out of both sinks."""
        if not self.lacking(sent):
            self._complete = max(sent, self._complete)
        return self._complete >= sent

    def lacking(self, sent: int) -> str:
        """Return what of the first `sent` records is missing, or differs; '' if nothing is."""
        ids = range(self._complete, sent)
        unread = sum(number not in self._inputs for number in ids)
        lines = sum(self._final.get(number) != self._inputs.get(number) for number in ids)
        due = {key: bisect_left(item.ids, sent) for key, item in self._keys.items()}
        counts = sum(max(n - self._keys[key].counted, 0) for key, n in due.items())
        found = {"inputs": unread, "records in counts": counts, "lines": lines}
        return ", ".join(f"{n} {what}" for what, n in found.items() if n)

    def round_ends(self, rollbacks: int) -> list[str]:
        """Return which results came again though the region went back only so often."""
        problems = []
        for name, key in self._keys.items():
            self.repeated += key.steps_back
            if key.steps_back > rollbacks:
                text = f"{key.steps_back} steps back with {rollbacks} rollbacks"
                problems.append(f"counts of {name}: {text}")
            key.steps_back = 0
        return problems

    def run_ends(self) -> list[str]:
        """Return what is there that never came in, once the load has ended and all is complete."""
        surplus = [*(self._final.keys() - self._inputs.keys())]
        problems = [f"{len(surplus)} lines are of no record, as {surplus[0]}"] if surplus else []
        pending = {name: len(key.pending) for name, key in self._keys.items() if key.pending}
        return problems + [f"{n} counts of {key} are of no records" for key, n in pending.items()]

    def _counted(self, key: _Key) -> list[str]:
        """Judge the results of a key, as far as its records are known."""
        problems = []
        while key.pending and key.pending[0].n <= len(key.sums):
            item = key.pending.popleft()
            if item.n < 1 or key.sums[item.n - 1] != item.total:
                problems.append(f"{item} is not the sum of its first {item.n} records")
            key.steps_back += item.n <= key.counted
            key.counted = item.n
        return problems
