"""The stores of repositories, on real servers."""

import os
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from tests.repositories.conftest import (
    PASSWORD,
    REPLICA_COUNT,
    S3_CREDENTIALS,
    SERVERS,
    port_of_all,
    redis_store,
    s3_store,
)
from tests.repositories.servers import free_port, object_store, redis_server, tls_front

from streamgraft_common.repositories import Missing, RepositoryUnavailable, Store
from streamgraft_common.repositories.file_store import ABANDONED_SECONDS, FileStore
from streamgraft_common.repositories.redis_store import RedisStore, addresses
from streamgraft_common.repositories.s3_store import S3Store
from streamgraft_common.resources import RedisRepository, S3Repository
from streamgraft_local.pki import authority, issue

pytestmark = pytest.mark.integration


@pytest.fixture
def namespace() -> str:
    """The servers are there for several tests."""
    return f"ns-{uuid.uuid4().hex[:8]}"


def test_what_is_written_is_read_listed_and_removed(store: Store, namespace: str) -> None:
    began = time.time()
    content = {f"{namespace}/blobs/{number:064}": bytes([number]) * 10_000 for number in range(20)}
    content[f"{namespace}/blobs/empty"] = b""
    for key, data in content.items():
        store.put(key, data)
    store.put(f"{namespace}/savepoints/other", b"x")
    assert {key: store.get(key) for key in content} == content
    listed = store.keys(f"{namespace}/blobs/")
    assert {item.key for item in listed} == set(content)
    assert all(began - 2 < item.modified < time.time() + 2 for item in listed)
    gone = [*list(content)[:7], f"{namespace}/blobs/never-there"]
    store.delete(gone)
    store.delete([])
    assert {item.key for item in store.keys(f"{namespace}/blobs/")} == set(content) - set(gone)
    with pytest.raises(Missing):
        store.get(gone[0])
    assert store.get(f"{namespace}/savepoints/other") == b"x"
    assert store.keys(f"{namespace}/nothing/") == []


def test_what_a_writer_that_died_left_in_a_folder_goes(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("ns/blobs/a", b"1")
    left, written = (tmp_path / "ns" / "blobs" / f".{uuid.uuid4()}" for _ in range(2))
    for file in (left, written):
        file.write_bytes(b"half")
    os.utime(left, (time.time() - ABANDONED_SECONDS - 1,) * 2)
    assert [item.key for item in store.keys("ns/blobs/")] == ["ns/blobs/a"]
    assert (left.exists(), written.exists()) == (False, True)


def test_a_later_put_wins(store: Store, namespace: str) -> None:
    store.put(f"{namespace}/savepoints/a", b"1")
    store.put(f"{namespace}/savepoints/a", b"22")
    assert store.get(f"{namespace}/savepoints/a") == b"22"


def test_of_several_that_create_a_key_one_succeeds(store: Store, namespace: str) -> None:
    for number in range(5):
        key = f"{namespace}/savepoints/{number}"
        start = threading.Barrier(8)

        def create(writer: int, key: str = key, start: threading.Barrier = start) -> bool:
            start.wait()
            return store.create(key, str(writer).encode())

        with ThreadPoolExecutor(8) as threads:
            done = list(threads.map(create, range(8)))
        assert done.count(True) == 1
        assert store.get(key) == str(done.index(True)).encode()
        assert not store.create(key, b"late")


def test_keys_are_dealt_to_servers_and_kept_on_as_many_as_there_are_replicas(
    redis_port: int, namespace: str
) -> None:
    store = redis_store(redis_port)
    keys = [f"{namespace}/blobs/{number}" for number in range(60)]
    for key in keys:
        store.put(key, key.encode())
    clients = [redis.Redis(host, redis_port, password=PASSWORD) for host in SERVERS]
    there = [
        sum(bool(client.exists(f"streamgraft:key:{key}")) for key in keys) for client in clients
    ]
    assert sum(there) == len(keys) * REPLICA_COUNT
    assert min(there) > 10, "each server has its part"
    other = redis_store(redis_port, servers=SERVERS[::-1])
    assert all(other.get(key) == key.encode() for key in keys), "addresses do not decide"


def test_one_replica_that_is_away_hinders_writing_and_not_reading(
    redis_port: int, namespace: str
) -> None:
    key = f"{namespace}/blobs/a"
    redis_store(redis_port).put(key, b"data")
    for away in SERVERS:
        store = redis_store(redis_port, servers=[host for host in SERVERS if host != away])
        assert store.get(key) == b"data"
        assert [item.key for item in store.keys(f"{namespace}/blobs/")] == [key]
        with pytest.raises(RepositoryUnavailable, match="3 of 4 Redis servers of redis answer"):
            store.put(key, b"other")
    with pytest.raises(RepositoryUnavailable, match="2 of 4"):
        redis_store(redis_port, servers=SERVERS[:2]).get(key)


def on_two(port: int) -> RedisStore:
    """Return a store that keeps each key on two servers."""
    settings = RedisRepository(service="redis", port=port, shard_count=1, replica_count=2)
    return RedisStore(settings, "ns", {}, lambda name: SERVERS[:2])


def test_replica_that_dies_is_passed_over_at_once(tmp_path: Path) -> None:
    """Also while it still counts as one that is there."""
    port = port_of_all()
    keys = [f"ns/blobs/{number}" for number in range(8)]
    with redis_server(tmp_path / "a", SERVERS[0], port):
        with redis_server(tmp_path / "b", SERVERS[1], port):
            stores = [on_two(port) for _ in (*keys, "one that lists")]
            for key in keys:
                stores[0].put(key, b"data")
            for store in stores:
                assert store.get(keys[0]) == b"data"  # it knows both
        assert [item.get(key) for item, key in zip(stores, keys, strict=False)] == [b"data"] * 8
        assert {item.key for item in stores[-1].keys("ns/blobs/")} == {*keys}


def test_what_was_cut_off_is_ended_by_who_comes_second(tmp_path: Path) -> None:
    """A server died amid writing: the key would be on the other one only, for good."""
    port = port_of_all()
    keys = [f"ns/savepoints/{number}" for number in range(16)]
    with redis_server(tmp_path / "a", SERVERS[0], port):
        with redis_server(tmp_path / "b", SERVERS[1], port):
            store = on_two(port)
            clients = [redis.Redis(host, port) for host in SERVERS[:2]]
            for key in keys:
                clients[0].set(f"streamgraft:key:{key}", b"first")
            created = {key: store.create(key, b"second") for key in keys}
            assert {*created.values()} == {True, False}, "of half of them the other one decides"
            for key in keys:
                expected = b"second" if created[key] else b"first"
                found = [client.get(f"streamgraft:key:{key}") for client in clients]
                assert found == [expected] * 2
            assert {item.key for item in store.keys("ns/savepoints/", complete=True)} == {*keys}
        assert {item.key for item in store.keys("ns/savepoints/")} == {*keys}
        with pytest.raises(RepositoryUnavailable):
            store.keys("ns/savepoints/", complete=True)
        with pytest.raises(RepositoryUnavailable):
            store.delete(keys)
        assert store.get(keys[0])


def test_a_password_that_is_wrong_is_said(redis_port: int) -> None:
    with pytest.raises(RepositoryUnavailable, match=r"0 of 4 Redis .*: invalid username"):
        redis_store(redis_port, password="wrong").get("ns/blobs/a")


def test_a_name_that_dns_does_not_know_is_no_server() -> None:
    store = RedisStore(RedisRepository(service="no-such-service.invalid"), "ns", {})
    with pytest.raises(RepositoryUnavailable, match="0 of 1 Redis servers of no-such-service"):
        store.keys("ns/blobs/")
    assert addresses("localhost.") or addresses("localhost")


def test_all_addresses_of_a_name_are_servers(
    redis_port: int, namespace: str, tmp_path: Path
) -> None:
    """The system's resolver gives them, as it does those of a headless Service."""
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host} redis.ns.svc\n" for host in SERVERS))
    key, program = f"{namespace}/blobs/a", tmp_path / "put.py"
    program.write_text(_PUT.format(port=redis_port, password=PASSWORD, key=key))
    own_hosts = f"mount --bind {hosts} /etc/hosts && exec {sys.executable} {program}"
    subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", own_hosts], check=True)
    assert redis_store(redis_port).get(key) == b"data"


_PUT = """
from streamgraft_common.repositories.redis_store import RedisStore
from streamgraft_common.resources import RedisRepository

settings = RedisRepository(
    service="redis", port={port}, shard_count=2, replica_count=2, restricted_property="password"
)
RedisStore(settings, "ns", {{"password": "{password}"}}).put("{key}", b"data")
"""


def test_what_a_server_has_evicted_is_not_listed(redis_port: int, namespace: str) -> None:
    store = redis_store(redis_port)
    store.put(f"{namespace}/blobs/a", b"a")
    for host in SERVERS:
        redis.Redis(host, redis_port, password=PASSWORD).delete(
            f"streamgraft:key:{namespace}/blobs/a"
        )
    assert store.keys(f"{namespace}/blobs/") == []


def test_a_bucket_that_is_not_there_and_a_key_that_is_wrong_are_said(
    object_store_address: str,
) -> None:
    settings = S3Repository(bucket="elsewhere", endpoint=object_store_address)
    with pytest.raises(RepositoryUnavailable, match="s3://elsewhere"):
        S3Store(settings, S3_CREDENTIALS).put("ns/blobs/a", b"")
    wrong = {**S3_CREDENTIALS, "secret-access-key": "wrong"}
    settings = S3Repository(bucket="copies", endpoint=object_store_address)
    with pytest.raises(RepositoryUnavailable, match="s3://copies"):
        S3Store(settings, wrong).get("ns/blobs/a")


def test_nobody_at_the_address_is_said_soon() -> None:
    began = time.monotonic()
    with pytest.raises(RepositoryUnavailable, match="s3://copies"):
        s3_store(f"http://localhost:{free_port()}").get("ns/blobs/a")
    assert time.monotonic() - began < 20


@pytest.fixture
def certified(tmp_path: Path) -> str:
    """Files of a certificate for localhost and its key; the authority's certificate, PEM."""
    signer = authority("test")
    issue(signer, "server", hosts=["localhost", "127.0.0.1"]).save(tmp_path, "server")
    signer.save(tmp_path, "authority")
    return (tmp_path / "authority.crt").read_text()


def test_an_object_store_shows_a_certificate_of_the_authority_that_is_given(
    tmp_path: Path, certified: str
) -> None:
    files = tmp_path / "server.crt", tmp_path / "server.key"
    with object_store(tmp_path, "copies", tls=files) as address:
        settings = S3Repository(bucket="copies", endpoint=address)
        known = S3Store(settings, {**S3_CREDENTIALS, "ca.crt": certified})
        assert known.create("ns/blobs/a", b"a")
        assert known.get("ns/blobs/a") == b"a"
        with pytest.raises(RepositoryUnavailable):
            S3Store(settings, S3_CREDENTIALS).get("ns/blobs/a")


def test_a_redis_server_shows_a_certificate_of_the_authority_that_is_given(
    tmp_path: Path, certified: str
) -> None:
    """The server that the package carries speaks no TLS: something in front of it does."""
    port, files = free_port(), (tmp_path / "server.crt", tmp_path / "server.key")
    authority("other").save(tmp_path, "other")
    strange = (tmp_path / "other.crt").read_text()
    with redis_server(tmp_path / "redis", "127.0.0.1", port), tls_front(port, *files) as outside:
        shown = RedisRepository(service="localhost", port=outside, authority="redis.ca")
        known = RedisStore(shown, "ns", {"redis.ca": certified}, lambda name: ["127.0.0.1"])
        assert known.create("ns/blobs/a", b"a")
        assert known.get("ns/blobs/a") == b"a"
        unknown = RedisStore(shown, "ns", {"redis.ca": strange}, lambda name: ["127.0.0.1"])
        with pytest.raises(RepositoryUnavailable, match="certificate"):
            unknown.get("ns/blobs/a")
        known.close()


def test_a_folder_that_is_not_mounted_is_no_empty_repository(tmp_path: Path) -> None:
    with pytest.raises(RepositoryUnavailable, match="there is no folder"):
        FileStore(tmp_path / "away").keys("ns/blobs/")
    with pytest.raises(RepositoryUnavailable, match="there is no folder"):
        FileStore(tmp_path / "away").get("ns/blobs/a")
