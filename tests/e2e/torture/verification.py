"""Whether results are those of a batch computation, whatever happened meanwhile. Pure.

The effect of each record of the outside topic is in every result exactly once: each result must be
that of the first n records of its key, in their order, and no n of a key may come again.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tests.e2e.torture.schedule import Means


@dataclass(frozen=True)
class Input:
    """A record of the outside topic."""

    key: str
    id: int


@dataclass(frozen=True)
class Result:
    """A record of the results' topic: `n` records of the key, whose ids add up to `total`."""

    key: str
    n: int
    total: int


@dataclass
class Verdict:
    """What was found. `problems` is empty if nothing is wrong."""

    problems: list[str] = field(default_factory=list)
    lost: int = 0
    """Records of the outside topic whose effect is in no result."""
    twice: int = 0
    """Results whose count of records was there before, or counts more than there are."""
    struck: Counter[Means] = field(default_factory=Counter)
    """How often what was done to parts of the cluster."""
    edits: int = 0
    loose_twice: int = 0
    """Results that crashes have written again to the sink that asks for at least once."""


def complete(sent: int, inputs: Sequence[Input], results: Iterable[Result]) -> bool:
    """Return whether everything that was sent is in the newest results."""
    if len({item.id for item in inputs}) < sent:
        return False
    newest = {item.key: item.n for item in results}
    counts: dict[str, int] = defaultdict(int)
    for item in inputs:
        counts[item.key] += 1
    return all(newest.get(key, 0) >= n for key, n in counts.items())


def verify(
    sent: int, inputs: Sequence[Input], results: Sequence[Result], loose: Sequence[Hashable] = ()
) -> Verdict:
    """Compare; inputs and results of a key are in the order of their partition."""
    verdict = Verdict()
    ids = {item.id for item in inputs}
    if missing := sorted(set(range(sent)) - ids):
        verdict.problems.append(f"{len(missing)} records never came, as {missing[0]}")
    verdict.loose_twice = len(loose) - len(set(loose))
    if len(ids) < len(inputs):
        verdict.problems.append("the load itself wrote records twice")
    expected = _totals(inputs)
    newest: dict[str, int] = {}
    for item in results:
        totals = expected.get(item.key, [])
        if not 1 <= item.n <= len(totals) or totals[item.n - 1] != item.total:
            verdict.problems.append(f"{item} is not the sum of its first {item.n} records")
        before = newest.get(item.key, 0)
        verdict.twice += item.n <= before or item.n > len(totals)
        if item.n <= before:
            verdict.problems.append(f"{item} came after {before} records were counted")
        newest[item.key] = max(item.n, before)
    for key, totals in expected.items():
        verdict.lost += max(len(totals) - newest.get(key, 0), 0)
        if newest.get(key, 0) != len(totals):
            verdict.problems.append(f"{key}: {newest.get(key, 0)} of {len(totals)} counted")
    return verdict


def _totals(inputs: Iterable[Input]) -> dict[str, list[int]]:
    """Return, by key, the sum of the first 1, 2, … ids."""
    ids: dict[str, list[int]] = defaultdict(list)
    for item in inputs:
        ids[item.key].append(item.id)
    return {key: list(accumulate(numbers)) for key, numbers in ids.items()}
