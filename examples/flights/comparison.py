"""The streamed result against the batch result, key by key."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from examples.flights.batch import KEY, Result


@dataclass(frozen=True)
class Difference:
    """One value that is not equal; None where it is missing."""

    key: tuple[str, str]
    column: str
    streamed: int | None
    batch: int | None

    def __str__(self) -> str:
        where = "-".join(self.key)
        return f"{where} {self.column}: streamed {self.streamed}, batch {self.batch}"


def result_of(records: list[dict[str, Any]]) -> Result:
    """Return the statistics that records of the topic `delays` end up with: the last of a key."""
    last = {(record["origin"], record["carrier"]): record for record in records}
    return {
        key: {name: value for name, value in record.items() if name not in KEY}
        for key, record in last.items()
    }


def differences(streamed: Result, batch: Result) -> list[Difference]:
    """Return every value in which the two differ; a missing key counts with all its columns."""
    return list(_differences(streamed, batch))


def _differences(streamed: Result, batch: Result) -> Iterator[Difference]:
    for key in sorted(streamed.keys() | batch.keys()):
        left, right = streamed.get(key, {}), batch.get(key, {})
        for column in [*right, *(name for name in left if name not in right)]:
            # Spark leaves null fields out of JSON: an absent value is None.
            if left.get(column) != right.get(column):
                yield Difference(key, column, left.get(column), right.get(column))


def flights_of(result: Result) -> int:
    """Return how many flights went into a result."""
    return sum(values.get("flights") or 0 for values in result.values())
