"""What went into the application of a run, and what has come out of both of its sinks."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.e2e.torture.consistent.application import DATABASE, LOCK_SECONDS, TABLES
from tests.e2e.torture.consistent.verification import Comparison, Line
from tests.e2e.torture.topics import Reader
from tests.e2e.torture.verification import Input, Result


class Lines:
    """Reads what the sink function has made final, in a database that it makes in a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / DATABASE
        self._last = 0
        with self._connected() as database:
            database.executescript(TABLES)

    def read(self) -> Iterator[Line]:
        """Yield what is final since the last call."""
        new = "select place, id, key, prepared from final where place > ? order by place"
        with self._connected() as database:
            found = database.execute(new, (self._last,)).fetchall()
        for place, number, key, prepared in found:
            self._last = place
            yield Line(key, number, bool(prepared))

    def _connected(self) -> "closing[sqlite3.Connection]":
        return closing(sqlite3.connect(self._file, LOCK_SECONDS))


class Outcome:
    """Both sinks beside the outside topic."""

    def __init__(self, bootstrap_servers: str, inputs: str, results: str, lines: Lines) -> None:
        self.comparison = Comparison()
        self._inputs = Reader(bootstrap_servers, inputs)
        self._results = Reader(bootstrap_servers, results)
        self._lines = lines

    def take(self) -> list[str]:
        """Read and compare what has come; return what is wrong of it. Blocks."""
        inputs = [Input(row["key"], row["id"]) for row in self._inputs.read()]
        results = [Result(row["key"], row["n"], row["total"]) for row in self._results.read()]
        return self.comparison.take(inputs, results, self._lines.read())

    def close(self) -> None:
        """Close the connections."""
        self._inputs.close()
        self._results.close()
