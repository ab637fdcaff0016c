"""Drivers differ in how a connection says that it is in autocommit."""

import sqlite3

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
