"""A database takes each batch once: shown with SQLite, and with a real PostgreSQL."""

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.postgres import postgres

from streamgraft import Batch, write_once

pytestmark = pytest.mark.integration

Connect = Callable[[], Any]


def batch(number: int, shard: int = 0, incarnation: str = "i") -> Batch:
    """Return a batch of a shard."""
    return Batch(number, writer=f"n.j.store.{shard}", shard=shard, incarnation=incarnation)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server."""
    with postgres() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Connects to a database with an empty table `results (n int)`."""
    if request.param == "sqlite":
        connect: Connect = partial(sqlite3.connect, tmp_path / "results.db")
    else:
        import psycopg

        connect = partial(psycopg.connect, request.getfixturevalue("server"))
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("drop table if exists results")
    cursor.execute("drop table if exists streamgraft_batches")
    cursor.execute("create table results (n int)")
    connection.commit()
    connection.close()
    return connect


def store(connect: Connect, number: Batch, value: int) -> bool:
    """Write a row, as a sink function would."""
    connection = connect()
    try:
        return write_once(
            connection,
            number,
            lambda cursor: cursor.execute(f"insert into results values ({value})"),
        )
    finally:
        connection.close()


def results(connect: Connect) -> list[int]:
    """Return what was written."""
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("select n from results order by n")
    found = [row[0] for row in cursor.fetchall()]
    connection.close()
    return found


def test_a_batch_that_comes_again_is_left_out(connect: Connect) -> None:
    assert [store(connect, batch(n), n) for n in (0, 1, 1, 0, 2)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert results(connect) == [0, 1, 2]


def test_shards_and_incarnations_have_batches_of_their_own(connect: Connect) -> None:
    """A job that is submitted again begins with batch 0 again."""
    assert store(connect, batch(5), 1)
    assert store(connect, batch(5, shard=1), 2)
    assert store(connect, batch(0, incarnation="later"), 3)
    assert not store(connect, batch(0, incarnation="later"), 4)
    assert results(connect) == [1, 2, 3]


def test_what_fails_is_undone_and_comes_again(connect: Connect) -> None:
    connection = connect()

    def fail(cursor: Any) -> None:
        cursor.execute("insert into results values (7)")
        raise RuntimeError("the network")

    with pytest.raises(RuntimeError):
        write_once(connection, batch(0), fail)
    connection.close()
    assert results(connect) == []
    assert store(connect, batch(0), 7)
    assert results(connect) == [7]


def test_autocommit_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    with pytest.raises(ValueError, match="autocommit"):
        write_once(connection, batch(0), lambda cursor: None)
    connection.close()
