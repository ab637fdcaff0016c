"""Which servers of Redis count: more may have come than a savepoint's settings know of."""

from typing import Any

import pytest
import redis

from streamgraft_common.repositories import Collector, RepositoryUnavailable, manifest
from streamgraft_common.repositories.manifest import Manifest, Piece, SavedFile, Share
from streamgraft_common.repositories.redis_store import RedisStore
from streamgraft_common.resources import RedisRepository

NOW = 1e12
"""At which nothing is fresh any more."""


class Server:
    """As much of a server as the store asks of it."""

    def __init__(self) -> None:
        self.away = False
        self.values: dict[str, bytes] = {}
        self.indexes: dict[str, dict[str, float]] = {}

    def set(self, key: str, value: str | bytes, *, nx: bool = False) -> bool:
        """Write."""
        self._answer()
        if nx and key in self.values:
            return False
        self.values[key] = value if isinstance(value, bytes) else value.encode()
        return True

    def get(self, key: str) -> bytes | None:
        """Read."""
        self._answer()
        return self.values.get(key)

    def exists(self, key: str) -> bool:
        """Look."""
        return key in self.values

    def unlink(self, key: str) -> None:
        """Remove."""
        self.values.pop(key, None)

    def zadd(self, index: str, entries: dict[str, float], *, nx: bool = False) -> None:
        """Write into an index."""
        self.indexes.setdefault(index, {}).update(entries)

    def zrem(self, index: str, key: str) -> None:
        """Remove from an index."""
        self.indexes.get(index, {}).pop(key, None)

    def zrange(
        self, index: str, first: int, last: int, *, withscores: bool
    ) -> list[tuple[bytes, float]]:
        """Read an index."""
        self._answer()
        return [(key.encode(), score) for key, score in self.indexes.get(index, {}).items()]

    def pipeline(self, *, transaction: bool) -> "Pipeline":
        """Collect calls."""
        return Pipeline(self)

    def _answer(self) -> None:
        if self.away:
            raise redis.ConnectionError("it is away")


class Pipeline:
    """Calls that a server gets together."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._calls: list[Any] = []

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *error: object) -> None:
        self._calls.clear()

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._server, name)
        return lambda *args, **options: self._calls.append(lambda: called(*args, **options))

    def execute(self) -> list[Any]:
        """Make them."""
        self._server._answer()
        return [call() for call in self._calls]


def store(servers: dict[str, Server], shards: int) -> RedisStore:
    """Return a store whose settings know of so many servers."""
    settings = RedisRepository(service="redis", shard_count=shards, replica_count=1)
    made = RedisStore(settings, "ns", {}, lambda name: list(servers))
    made._clients = dict(servers)  # type: ignore[arg-type]
    return made


def test_a_server_that_the_settings_do_not_know_of_is_missed_all_the_same() -> None:
    """It may have the manifests of kept cuts, whose blobs would be garbage."""
    servers = {f"10.0.0.{number}": Server() for number in range(3)}
    today, old = store(servers, 3), store(servers, 2)
    for number in range(12):
        piece = Piece(sha256=f"{number:064}", size=1, upload="u")
        document = Manifest(files=[SavedFile(path="a", pieces=[piece])])
        key = Share(f"cut-{number}", "uid", "work", 0).key("ns")
        today.put(manifest.blobs("ns") + piece.name, b"x")
        today.create(key, document.model_dump_json(by_alias=True).encode())
    assert all(server.indexes for server in servers.values())
    servers["10.0.0.2"].away = True
    for _ in range(2):
        with pytest.raises(RepositoryUnavailable, match=r"not all .* of redis .* it is away"):
            Collector(old, "ns").collect(NOW)
    with pytest.raises(RepositoryUnavailable, match="not all"):
        old.delete(["ns/blobs/a"])
    old.get(next(item.key for item in old.keys("ns/blobs/")))  # what others ask for is answered
    servers["10.0.0.2"].away = False
    assert Collector(old, "ns").collect(NOW) == 0
    assert len(today.keys("ns/blobs/")) == 12


def test_servers_may_be_deaf_to_one_kind_of_addresses() -> None:
    servers = {"10.0.0.1": Server(), "fd00::1": Server(), "fd00::2": Server()}
    servers["fd00::1"].away = servers["fd00::2"].away = True
    assert store(servers, 1).keys("ns/blobs/", complete=True) == []
    servers["fd00::2"].away = False
    with pytest.raises(RepositoryUnavailable, match="fd00::1: it is away"):
        store(servers, 1).keys("ns/blobs/", complete=True)
