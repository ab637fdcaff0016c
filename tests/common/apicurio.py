"""A real schema registry: Apicurio's own distribution, which keeps its schemas in memory here."""

import hashlib
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.repositories.servers import free_port, running

from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain import java
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.jars import REPOSITORY

NAME, VERSION = "apicurio-registry-app", "2.6.13.Final"
ARCHIVE = f"{REPOSITORY}io/apicurio/{NAME}/{VERSION}/{NAME}-{VERSION}-all.zip"
DIGEST = "d88014c1addff1fc585e1e9510fc41276473726340f4e0997353b46342d3532b"
PATIENCE_SECONDS = 120.0
"""It takes six seconds of CPU to start."""


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """Run a registry; give the URL of its API that is compatible with Confluent's."""
    cache, port = Cache(cache_folder(), silent), free_port()
    command = [
        *(str(java.find(cache)), "-Xmx256m", "-XX:TieredStopAtLevel=1"),
        *("-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"),
        *("-jar", str(_distribution(cache) / f"{NAME}-{VERSION}-runner.jar")),
    ]
    with running(command, "127.0.0.1", port, folder / "registry.log", PATIENCE_SECONDS):
        yield f"http://127.0.0.1:{port}/apis/ccompat/v7"


def _distribution(cache: Cache) -> Path:
    return cache.get("apicurio", key_of(DIGEST), _unpack, "Apicurio's registry, 140 MB")


def _unpack(folder: Path) -> None:
    archive = folder / "all.zip"
    with urllib.request.urlopen(ARCHIVE, timeout=60) as answer, archive.open("wb") as file:
        while block := answer.read(1 << 20):
            file.write(block)
    with archive.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == DIGEST
    with zipfile.ZipFile(archive) as found:
        found.extractall(folder)
    archive.unlink()
