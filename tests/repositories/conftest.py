"""Servers for the tests of repositories: started once, each test has names of its own."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.repositories.servers import (
    ACCESS_KEY,
    SECRET_KEY,
    free_port,
    object_store,
    redis_server,
)

from streamgraft_common.repositories import Credentials, Store
from streamgraft_common.repositories.file_store import FileStore
from streamgraft_common.repositories.redis_store import RedisStore
from streamgraft_common.repositories.s3_store import S3Store
from streamgraft_common.resources import RedisRepository, S3Repository

PASSWORD = "sesame"
SHARD_COUNT, REPLICA_COUNT = 2, 2
SERVERS = [f"127.0.0.{number}" for number in range(1, 1 + SHARD_COUNT * REPLICA_COUNT)]
S3_CREDENTIALS: Credentials = {"access-key-id": ACCESS_KEY, "secret-access-key": SECRET_KEY}


@pytest.fixture(scope="session")
def object_store_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 gateway with a bucket `copies`."""
    with object_store(tmp_path_factory.mktemp("gateway"), "copies") as address:
        yield address


def port_of_all() -> int:
    """Return a port that is free at all addresses of the servers."""
    while True:
        port = free_port()
        try:
            for host in SERVERS:
                with socket.socket() as found:
                    found.bind((host, port))
        except OSError:
            continue
        return port


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Redis servers at all addresses, with a password."""
    folder, port = tmp_path_factory.mktemp("redis"), port_of_all()
    with ExitStack() as stack:
        for host in SERVERS:
            shown = ("--requirepass", PASSWORD)
            stack.enter_context(redis_server(folder / host, host, port, *shown))
        yield port


def redis_store(port: int, password: str = PASSWORD, servers: list[str] = SERVERS) -> RedisStore:
    """Return a store on several servers, whose addresses are those of a name."""
    settings = RedisRepository(
        service="redis",
        port=port,
        shard_count=SHARD_COUNT,
        replica_count=REPLICA_COUNT,
        restricted_property="redis.password",
    )

    def known(name: str) -> list[str]:
        return servers if name == "redis.ns.svc" else []

    return RedisStore(settings, "ns", {"redis.password": password}, known)


def s3_store(address: str, prefix: str = "") -> S3Store:
    """Return a store in the gateway's bucket."""
    return S3Store(S3Repository(bucket="copies", prefix=prefix, endpoint=address), S3_CREDENTIALS)


@pytest.fixture(
    params=[
        "files",
        pytest.param("s3", marks=pytest.mark.integration),
        pytest.param("redis", marks=pytest.mark.integration),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store."""
    match request.param:
        case "s3":
            return s3_store(request.getfixturevalue("object_store_address"), "some/prefix")
        case "redis":
            return redis_store(request.getfixturevalue("redis_port"))
    return FileStore(tmp_path)
