"""Finding, building and keeping tools: what is decided from versions and contents."""

import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

from streamgraft_local import pki
from streamgraft_local.errors import ToolError
from streamgraft_local.progress import Phase, Step, silent
from streamgraft_local.toolchain import (
    CONTROL_PLANE,
    class_archive,
    golang,
    jars,
    java,
    prometheus,
    trust,
)
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("command not found", None),
    ],
)
def test_java_version(output: str, version: int | None) -> None:
    """Old Javas call themselves 1.x."""
    assert java.major_version(output) == version


@pytest.mark.parametrize(
    ("output", "version"), [("go1.26.8", (1, 26)), ("go version go1.9 linux", (1, 9)), ("", None)]
)
def test_go_version(output: str, version: tuple[int, int] | None) -> None:
    """1.9 is older than 1.26."""
    assert golang.version(output) == version
    assert version is None or (version >= golang.OLDEST) == (version == (1, 26))


def test_prometheus_version() -> None:
    """As Debian's package prints it."""
    assert prometheus.version("prometheus, version 2.42.0+ds (branch: debian/sid)") == (2, 42)
    assert prometheus.version("nonsense") is None


def test_key_depends_on_every_input() -> None:
    """Also on where one ends and the next begins."""
    keys = {key_of("ab", "c"), key_of("a", "bc"), key_of("c", "ab"), key_of("ab"), key_of(b"abc")}
    assert len(keys) == 5
    assert key_of("ab", "c") == key_of(b"ab", "c")


def test_module_key_follows_its_files(tmp_path: Path) -> None:
    """A changed pin is another binary."""
    for name in ("go.mod", "go.sum", "main.go"):
        (tmp_path / name).write_text(name)
    module = golang.Module("x", tmp_path)
    before = module.key()
    assert golang.Module("x", tmp_path, tags="a").key() != before
    (tmp_path / "go.sum").write_text("changed")
    assert module.key() != before


def test_modules_are_complete() -> None:
    """Both of our Go modules pin what they are built from."""
    for module in (CONTROL_PLANE, prometheus.MODULE):
        assert (module.folder / "go.sum").stat().st_size > 10_000
        assert "-mod=readonly" in module.arguments()


def test_spark_jars_are_fetched_alone() -> None:
    """What they need is among Spark's own jars; another version of it would clash."""
    module = jars.ivy_module(jars.CONNECTOR, transitive=False)
    assert module.count('transitive="false"') == len(jars.CONNECTOR) == 4


def test_made_once(tmp_path: Path) -> None:
    """Threads (and processes) that want the same wait for the first."""
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "result").write_text("done")

    def want() -> None:
        assert (Cache(tmp_path, silent).get("x", "k", make, "") / "result").read_text() == "done"

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want()
    assert len(made) == 1


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    """A half-made thing is never taken for a whole one; the next try makes it."""
    steps: list[Step] = []
    cache = Cache(tmp_path, steps.append)

    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise ToolError("no network")

    with pytest.raises(ToolError):
        cache.get("x", "k", fail, "")
    assert list((tmp_path / "x").iterdir()) == []
    assert [step.phase for step in steps] == [Phase.STARTED, Phase.FAILED]
    assert cache.get("x", "k", lambda folder: None, "").is_dir()


def test_failing_command_shows_its_last_words() -> None:
    """And what it was for."""
    with pytest.raises(ToolError, match=r"(?s)asking a shell failed \(3\).*because"):
        run("asking a shell", ("sh", "-c", "echo because >&2; exit 3"))
    with pytest.raises(ToolError, match="asking nobody"):
        run("asking nobody", ("/no/such/program",))


def test_java_trusts_the_users_authorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of $SSL_CERT_FILE, as other tools do; without it Java's own."""
    pki.ensure(tmp_path / "pki")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert trust.java_options(tmp_path) == ()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pki" / "ca.crt"))
    store = tmp_path / "trust.p12"
    assert f"-Djavax.net.ssl.trustStore={store}" in trust.java_options(tmp_path)
    authority = x509.load_pem_x509_certificate((tmp_path / "pki" / "ca.crt").read_bytes())
    stored = pkcs12.load_pkcs12(store.read_bytes(), b"changeit").additional_certs
    assert [entry.certificate for entry in stored] == [authority]


def authority_of_old(folder: Path) -> bytes:
    """Return a certificate (PEM) with a negative serial number, as systems' bundles have some."""
    pki.ensure(folder)
    modern = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    number = modern.serial_number
    serial = number.to_bytes(number.bit_length() // 8 + 1, "big")  # as in DER
    content = modern.public_bytes(Encoding.DER)
    assert serial in content
    return ssl.DER_cert_to_PEM_cert(content.replace(serial, b"\x80" + serial[1:], 1)).encode()


def test_old_authorities_are_taken_over_in_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they would be warned of is no failure, though tests take warnings for failures."""
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(authority_of_old(tmp_path / "pki"))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    load, first = x509.load_pem_x509_certificates, threading.Lock()
    other_begins, one_is_over = threading.Event(), threading.Event()

    def load_in_turn(data: bytes) -> list[x509.Certificate]:
        if first.acquire(blocking=False):
            other_begins.wait(0.2)  # in vain if they wait for each other
        else:
            other_begins.set()
            one_is_over.wait()
        return load(data)

    monkeypatch.setattr(x509, "load_pem_x509_certificates", load_in_turn)
    folders = [tmp_path / name for name in ("broker", "connector")]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(folders)) as pool:
        taken = [pool.submit(trust.java_options, folder) for folder in folders]
        for future in taken:
            future.add_done_callback(lambda _: one_is_over.set())
    assert all(future.result() for future in taken)


def test_a_java_without_class_archive_gets_none(tmp_path: Path) -> None:
    """Such a Java (some are built small) still runs everything, only starts slower."""
    plain = tmp_path / "java"
    plain.write_text('#!/bin/sh\ncase "$*" in *-Xshare:on*) exit 1;; esac\necho 21\n')
    plain.chmod(0o755)
    assert class_archive.make(Cache(tmp_path / "cache", silent), plain, tmp_path) is None
    assert not (tmp_path / "cache").exists()
