"""A store on servers of Redis. `SET … NX` is the fence.

A server has an identity, which is kept on it: so another address of it changes nothing, and one
that comes back empty is another server. Which servers keep a key is decided by rendezvous hashing
(Thaler and Ravishankar 1998). The keys of a server are in sorted sets beside them, for nothing else
lists them without looking at all of the database.
"""

import hashlib
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from streamgraft_common.repositories.store import (
    Credentials,
    Missing,
    RepositoryUnavailable,
    Stored,
)
from streamgraft_common.resources import RedisRepository

Resolve = Callable[[str], list[str]]
Answer = TypeVar("Answer")
_IDENTITY = "streamgraft:server"
_KEY, _INDEX = "streamgraft:key:", "streamgraft:index:"
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_KNOWN_SECONDS = 10.0
"""For so long the servers that DNS gave are taken for all there are."""


def addresses(name: str) -> list[str]:
    """Return the addresses that a name of DNS has, none if it is unknown."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return sorted({str(item[4][0]) for item in found})


@dataclass(frozen=True)
class _Server:
    identity: str
    client: redis.Redis

    def rank(self, key: str) -> bytes:
        """Return the server's place in the order of those that may keep a key."""
        return hashlib.sha256(f"{self.identity}/{key}".encode()).digest()


class RedisStore:
    """Each key on as many servers as there are to be replicas of it."""

    def __init__(
        self,
        settings: RedisRepository,
        namespace: str,
        credentials: Credentials,
        resolve: Resolve = addresses,
    ) -> None:
        self._settings = settings
        name = settings.service
        self._names = [name] if "." in name else [f"{name}.{namespace}.svc", name]
        self._credentials = credentials
        self._resolve = resolve
        self._clients: dict[str, redis.Redis] = {}
        self._servers: list[_Server] = []
        self._silent = False
        """Whether one of the addresses did not answer when these were found."""
        self._known_until = 0.0
        self._why = ""

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever was there."""
        for server in self._keepers(key):
            self._set(server, key, data, only_new=False)

    def create(self, key: str, data: bytes) -> bool:
        """Write if there is nothing of the key: the first of its servers decides.

        Whoever comes second ends what the first one was cut off in, or lost the answer of.
        """
        first, *others = self._keepers(key)
        created = self._set(first, key, data, only_new=True)
        if not created and others:
            with self._answering():
                there = first.client.get(_KEY + key)
            if not isinstance(there, bytes):
                return False  # deleted by now
            data = there
        for server in others:
            self._set(server, key, data, only_new=not created)
        return created

    def get(self, key: str) -> bytes:
        """Return what was written, from wherever it is. Raises Missing."""
        missing = self._further_replicas
        asked = self._asked(lambda client: client.get(_KEY + key), missing, lambda it: it.rank(key))
        for data in asked:
            if isinstance(data, bytes):
                return data
        raise Missing(key)

    def keys(self, prefix: str, *, complete: bool = False) -> list[Stored]:
        """Return all keys that begin so; `complete`: those of all servers."""
        found: dict[str, float] = {}
        missing = 0 if complete else self._further_replicas
        if complete:
            self._all()
        for listed in self._asked(lambda client: _listed(client, prefix), missing):
            for key, written in listed:
                found[key] = max(written, found.get(key, 0.0))
        return [Stored(key, written) for key, written in found.items()]

    def delete(self, keys: Sequence[str]) -> None:
        """Remove what is there of them. What a server kept that is away would come back with it."""
        for server in self._all():
            with self._answering(), server.client.pipeline(transaction=True) as together:
                for key in keys:
                    together.unlink(_KEY + key)
                    together.zrem(_index(key), key)
                together.execute()

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def _set(self, server: _Server, key: str, data: bytes, *, only_new: bool) -> bool:
        with self._answering(), server.client.pipeline(transaction=True) as together:
            together.set(_KEY + key, data, nx=only_new)
            together.zadd(_index(key), {key: time.time()}, nx=only_new)
            done, _ = together.execute()
            return bool(done)

    def _asked(
        self,
        ask: Callable[[redis.Redis], Answer],
        missing: int,
        order: Callable[[_Server], bytes] | None = None,
    ) -> Iterator[Answer]:
        """Yield what servers answer, one after the other.

        Raises RepositoryUnavailable if more than `missing` are away. With one less than there are
        replicas, all that was written whole is among it.
        """
        servers = self._there(missing)
        away = self._wanted - len(servers)
        for server in sorted(servers, key=order) if order else servers:
            try:
                with self._answering():
                    answer = ask(server.client)
            except RepositoryUnavailable:
                away += 1
                if away > missing:
                    raise
            else:
                yield answer

    @property
    def _wanted(self) -> int:
        return self._settings.shard_count * self._settings.replica_count

    @property
    def _further_replicas(self) -> int:
        return self._settings.replica_count - 1

    def _keepers(self, key: str) -> list[_Server]:
        """Return the servers of a key, the first one first; all there should be must be there."""
        servers = sorted(self._there(0), key=lambda item: item.rank(key))
        return servers[: self._settings.replica_count]

    def _there(self, missing: int) -> list[_Server]:
        """Return the servers that answer; so many of them may be away."""
        now, wanted = time.monotonic(), self._wanted
        if now >= self._known_until or len(self._servers) < wanted:
            self._servers = self._found()
            self._known_until = now + _KNOWN_SECONDS
        if len(self._servers) < wanted - missing:
            raise RepositoryUnavailable(
                f"{len(self._servers)} of {wanted} Redis servers of {self._settings.service}"
                " answer" + (f": {self._why}" if self._why else "")
            )
        return self._servers

    def _all(self) -> list[_Server]:
        """Return all servers: also those that came since our settings, which may be old, were made.

        A Savepoint has those of its job of when it was taken.
        """
        servers = self._there(0)
        if self._silent:  # perhaps it was away only then
            self._known_until = 0.0
            servers = self._there(0)
        if self._silent:
            service = self._settings.service
            raise RepositoryUnavailable(f"not all Redis servers of {service} answer: {self._why}")
        return servers

    def _found(self) -> list[_Server]:
        self._why = ""
        found: dict[str, _Server] = {}
        answered: dict[str, bool] = {}
        names = (self._resolve(name) for name in self._names)
        for address in next(filter(None, names), []):
            client = self._clients.setdefault(address, self._client(address))
            try:
                client.set(_IDENTITY, str(uuid.uuid4()), nx=True)
                identity = str(client.get(_IDENTITY))
                found[identity] = _Server(identity, client)
                answered[address] = True
            except redis.RedisError as error:
                self._why, answered[address] = f"{address}: {error}", False
        # Servers may be deaf to IPv6 altogether though the name has such addresses of them.
        spoken = {":" in address for address, done in answered.items() if done}
        silent = {":" in address for address, done in answered.items() if not done}
        self._silent = bool(silent & spoken)
        return list(found.values())

    def _client(self, address: str) -> redis.Redis:
        settings = self._settings
        authority = self._credentials.get(settings.authority or "")
        # Certificates are of names; what DNS gives for the service's name are addresses.
        tls: dict[str, Any] = {"ssl": True, "ssl_ca_data": authority, "ssl_check_hostname": False}
        return redis.Redis(
            host=address,
            port=settings.port,
            password=self._credentials.get(settings.restricted_property or ""),
            socket_connect_timeout=_CONNECT_SECONDS,
            socket_timeout=_ANSWER_SECONDS,
            retry=Retry(ExponentialBackoff(base=0.1), 2),
            **(tls if settings.authority else {}),
        )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            self._known_until = 0.0
            message = f"Redis of {self._settings.service}: {error}"
            raise RepositoryUnavailable(message) from error


def _listed(client: redis.Redis, prefix: str) -> list[tuple[str, float]]:
    """Return the keys of a server that begin so, and are there: a server may evict what it has."""
    known: Any = client.zrange(_index(prefix), 0, -1, withscores=True)
    entries = [
        (name.decode(), float(written))
        for name, written in known
        if name.decode().startswith(prefix)
    ]
    with client.pipeline(transaction=False) as together:
        for key, _ in entries:
            together.exists(_KEY + key)
        there = together.execute()
    return [entry for entry, exists in zip(entries, there, strict=True) if exists]


def _index(key: str) -> str:
    """Return the sorted set that has a key: of its namespace, and what kind of thing it is."""
    return _INDEX + "/".join(key.split("/")[:2])
