"""Drivers differ in how a connection says that it is in autocommit."""

import sqlite3
import sys
from typing import Any

import pytest

from streamgraft import Batch, write_once

BATCH = Batch(0, writer="n.j.store.0", shard=0, incarnation="i")


class MySqlConnection:
    """SQLite, as pymysql and mysqlclient would show it."""

    __module__ = "sqlite3"  # whose parameters it takes

    def __init__(self, autocommit: bool) -> None:
        self._autocommit = autocommit
        connection = sqlite3.connect(":memory:")
        self.cursor, self.commit = connection.cursor, connection.commit
        self.rollback, self.close = connection.rollback, connection.close

    def autocommit(self, value: bool) -> None:
        """Set it."""
        self._autocommit = value

    def get_autocommit(self) -> bool:
        """Return it."""
        return self._autocommit


def test_a_method_that_sets_autocommit_does_not_say_that_it_is_on() -> None:
    connection = MySqlConnection(autocommit=False)
    assert write_once(connection, BATCH, lambda cursor: None)
    assert not write_once(connection, BATCH, lambda cursor: None)
    connection.autocommit(True)
    with pytest.raises(ValueError, match="the connection is in autocommit"):
        write_once(connection, BATCH, lambda cursor: None)
    connection.close()


class NewerConnection(sqlite3.Connection):
    """A connection as Python 3.12 has it, with an attribute `autocommit`."""

    __module__ = "sqlite3"

    def __init__(self, autocommit: int, isolation_level: Any) -> None:
        super().__init__(":memory:", isolation_level=isolation_level)
        self.mode = autocommit

    @property
    def autocommit(self) -> int:
        """What it was opened with."""
        return self.mode


LEGACY = -1


@pytest.mark.parametrize(("mode", "level"), [(True, ""), (True, "IMMEDIATE"), (LEGACY, None)])
def test_the_autocommit_of_newer_sqlite_is_refused(mode: int, level: str | None) -> None:
    """Its commit does nothing: the note would be there before the rows."""
    connection = NewerConnection(mode, level)
    with pytest.raises(ValueError, match="the connection is in autocommit"):
        write_once(connection, BATCH, lambda cursor: None)
    connection.close()


@pytest.mark.parametrize(("mode", "level"), [(False, ""), (False, None), (LEGACY, "")])
def test_newer_sqlite_writes_once_in_any_other_mode(mode: int, level: str | None) -> None:
    connection = NewerConnection(mode, level)
    assert write_once(connection, BATCH, lambda cursor: None)
    assert not write_once(connection, BATCH, lambda cursor: None)
    connection.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no such parameter before")
@pytest.mark.parametrize("mode", [True, False])
def test_sqlite_itself_says_which_mode_it_is_in(mode: bool) -> None:
    connection = sqlite3.connect(":memory:", autocommit=mode)  # type: ignore[call-overload, unused-ignore]
    if mode:
        with pytest.raises(ValueError, match="the connection is in autocommit"):
            write_once(connection, BATCH, lambda cursor: None)
    else:
        assert write_once(connection, BATCH, lambda cursor: None)
    connection.close()
