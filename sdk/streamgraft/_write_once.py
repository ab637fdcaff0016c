"""A database takes each batch of a sink function once, whatever dies."""

import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from streamgraft_common.batches import Batch

TABLE = "streamgraft_batches"
"""What is noted: the last batch of each writer."""
_LEGACY_TRANSACTION_CONTROL = -1
"""`autocommit` of a connection of sqlite3 for which `isolation_level` decides."""
_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s"}
"""Places of parameters in a statement, by a driver's `paramstyle` (PEP 249)."""
_CREATE = (
    f"create table if not exists {TABLE}"
    " (writer varchar(400) primary key, incarnation varchar(40) not null, batch bigint not null)"
)


def write_once(connection: Any, batch: Batch, write: Callable[[Any], object]) -> bool:
    """Call `write` with a cursor, in a transaction in which it is noted that the batch is written.

    `connection`: of PEP 249, as sqlite3's and psycopg's are, and not in autocommit. A batch that is
    noted already is left out; returns whether it was not. What `write` raises undoes all of it.
    """
    if _commits_by_itself(connection):
        raise ValueError("the connection is in autocommit: writing and noting must be one")
    statements = _Statements(connection)
    cursor = connection.cursor()
    try:
        statements.ensure(cursor)
        fresh = statements.note(cursor, batch)
        if fresh:
            write(cursor)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        cursor.close()
    return fresh


def _commits_by_itself(connection: Any) -> bool:
    """Return whether a connection is in autocommit; drivers have their own ways to say so."""
    if isinstance(connection, sqlite3.Connection):
        # From Python 3.12 on True and False decide, whatever `isolation_level` says.
        mode: object = getattr(connection, "autocommit", _LEGACY_TRANSACTION_CONTROL)
        legacy = mode == _LEGACY_TRANSACTION_CONTROL
        return connection.isolation_level is None if legacy else bool(mode)
    said = getattr(connection, "autocommit", False)
    # pymysql and mysqlclient have a method of that name, which sets it.
    return bool(connection.get_autocommit() if callable(said) else said)


class _Statements:
    """What is asked of a database."""

    def __init__(self, connection: Any) -> None:
        driver = sys.modules[type(connection).__module__.partition(".")[0]]
        style = getattr(driver, "paramstyle", "")
        if style not in _MARKS:
            raise ValueError(
                f"{driver.__name__} has parameters of style {style or 'unknown'}:"
                f" use a driver with {', '.join(_MARKS)}"
            )
        self._mark = _MARKS[style]
        self._connection = connection

    def ensure(self, cursor: Any) -> None:
        """Make the table if it is missing."""
        try:
            cursor.execute(f"select 1 from {TABLE} where 1 = 0")
        except Exception:  # each driver has its own
            self._connection.rollback()
            cursor.execute(_CREATE)
            self._connection.commit()

    def note(self, cursor: Any, batch: Batch) -> bool:
        """Note the batch, unless it or a later one is noted; another incarnation begins anew.

        The row is locked from here on: of two owners of a shard one waits for the other.
        """
        now = (batch.incarnation, int(batch), batch.writer)
        self._run(
            cursor,
            f"update {TABLE} set incarnation = ?, batch = ?"
            " where writer = ? and (incarnation <> ? or batch < ?)",
            *now,
            batch.incarnation,
            int(batch),
        )
        if cursor.rowcount == 1:
            return True
        self._run(cursor, f"select batch from {TABLE} where writer = ?", batch.writer)
        if cursor.fetchone() is not None:
            return False
        self._run(
            cursor, f"insert into {TABLE} (incarnation, batch, writer) values (?, ?, ?)", *now
        )
        return True

    def _run(self, cursor: Any, statement: str, *values: object) -> None:
        cursor.execute(statement.replace("?", self._mark), values)
