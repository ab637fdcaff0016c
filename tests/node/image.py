"""Images without Docker: the steps of deploy/image/Dockerfile in a root folder, packed by ours.

The root is Debian's (debootstrap) with the packages that the Dockerfile installs; what puts
Streamgraft into it is the same script, deploy/image/install.sh.
"""

import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.node import oci, programs
from tests.node.dockerfile import Dockerfile

from streamgraft_local.paths import DEPLOY, cache_folder
from streamgraft_local.progress import Report
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run

REPOSITORY, TAG = "localhost/streamgraft", "test"
_ROOT = DEPLOY.parent
_MIRROR = "http://deb.debian.org/debian"
_FILE = Dockerfile.parse((DEPLOY / "image" / "Dockerfile").read_text())
_SCRIPT = DEPLOY / "image" / "install.sh"
_WHEEL = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]
_CARRIED = [path for path in _WHEEL["force-include"] if path != "deploy/chart"]
"""The chart is in the wheel too, but nothing in the image reads it: it may change alone."""
_SOURCES = (*_WHEEL["packages"], *_CARRIED, "deploy/image")
_UNUSED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")


def streamgraft(report: Report) -> Path:
    """Return the archive of the image for operator, adapter and PEs, made anew if code changed."""
    cache = Cache(cache_folder(), report)
    base = _base(cache)
    key = key_of(str(base), *_content())

    def make(folder: Path) -> None:
        root = folder / "root"
        run("copying the root", ("cp", "-a", "--reflink=auto", str(base / "root"), str(root)))
        _install(root, folder)
        oci.pack(root / "opt", folder / "opt.tar", "opt")
        image = oci.Image(f"{REPOSITORY}:{TAG}", str(_FILE.user), _FILE.environment)
        oci.write(image, (base / "base.tar", folder / "opt.tar"), folder / "image.tar")
        shutil.rmtree(root)
        (folder / "opt.tar").unlink()

    return cache.get("image", key, make, "the image, with its class archive; 2 minutes") / (
        "image.tar"
    )


def pause(report: Report, folder: Path) -> Path:
    """Return the archive of the image that holds pods' namespaces, written to `folder`."""
    root = folder / "pause"
    root.mkdir()
    shutil.copy2(programs.pause(report), root / "pause")
    oci.pack(root, folder / "pause.layer")
    archive = folder / "pause.tar"
    described = oci.Image("localhost/pause:1", entrypoint=("/pause",))
    oci.write(described, [folder / "pause.layer"], archive)
    return archive


def _base(cache: Cache) -> Path:
    def make(folder: Path) -> None:
        root = folder / "root"
        options = ("--variant=minbase", f"--include={','.join(_FILE.packages)}")
        run("making a root", ("debootstrap", *options, "bookworm", str(root), _MIRROR))
        for path in _UNUSED:
            shutil.rmtree(root / path, ignore_errors=True)
        user = ("useradd", "--uid", str(_FILE.user), "--create-home", "streamgraft")
        run("adding the user", ("chroot", str(root), *user))
        oci.pack(root, folder / "base.tar")

    return cache.get(
        "image-base",
        key_of(*_FILE.packages, str(_FILE.user)),
        make,
        "Debian for the image; 2 minutes",
    )


def _content() -> Iterator[bytes]:
    """Return all that determines what is installed."""
    listed = run("listing sources", ("git", "-C", str(_ROOT), "ls-files", "-z", *_SOURCES))
    for name in sorted(filter(None, listed.split("\0"))):
        if (file := _ROOT / name).is_file():
            yield from (name.encode(), file.read_bytes())
    for file in (_ROOT / "pyproject.toml", _ROOT / "constraints.txt"):
        yield file.read_bytes()


def _install(root: Path, folder: Path) -> None:
    wheels = root / "wheels"
    wheels.mkdir()
    extras = _FILE.requirement.removeprefix(".")
    constraints = _ROOT / "constraints.txt"
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "-c", str(constraints))
    run("making wheels", (*pip, "-w", str(wheels), f"{_ROOT}{extras}"))
    for file in (constraints, _SCRIPT):
        shutil.copy2(file, wheels)
    own = next(wheels.glob("streamgraft-*.whl")).name
    variables = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels",
        "STREAMGRAFT_CACHE": "/cache",
    }
    clean = ("env", "-i", *(f"{name}={value}" for name, value in variables.items()))
    script = ("sh", "/wheels/install.sh", f"/wheels/{own}{extras}", "/wheels/constraints.txt")
    _run_in(root, (*clean, *script))
    shutil.rmtree(wheels)
    (root / "cache").rmdir()


def _run_in(root: Path, command: Sequence[str]) -> None:
    """Run a command in a root that sees /proc, /dev and what was fetched already.

    The mounts are in a namespace of their own: nobody outside can remove anything through them.
    """
    # Spark binds to "localhost", which a fresh root does not know.
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    binds = {"/proc": "proc", "/dev": "dev", str(cache_folder()): "cache"}
    (root / "cache").mkdir()
    mounts = [f"mount --bind {source} {root / target}" for source, target in binds.items()]
    steps = " && ".join([*mounts, f"exec chroot {root} {shlex.join(command)}"])
    run("installing into the image", ("unshare", "--mount", "sh", "-c", steps))
