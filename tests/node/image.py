"""Images without Docker: the steps of deploy/image/Dockerfile, each a layer packed by ours.

The root is Debian's (debootstrap) with the packages that the Dockerfile installs; what puts
Streamgraft into it is the same script, deploy/image/install.sh. Each layer is kept by what it is
made of: a change of Python code makes the last one anew, in seconds.
"""

import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.node import oci, programs
from tests.node.dockerfile import Dockerfile
from tests.node.layers import Addition, Layer

from streamgraft_local.paths import DEPLOY, cache_folder
from streamgraft_local.progress import Report
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run

REPOSITORY, TAG = "localhost/streamgraft", "test"
FLIGHTS = "localhost/flights:test"
"""Ours, and on top of it the data of the demo."""
_ROOT = DEPLOY.parent
_MIRROR = "http://deb.debian.org/debian"
_FILE = Dockerfile.parse((DEPLOY / "image" / "Dockerfile").read_text())
_SCRIPT = DEPLOY / "image" / "install.sh"
_PROJECT, _CONSTRAINTS = _ROOT / "pyproject.toml", _ROOT / "constraints.txt"
_WHEEL = tomllib.loads(_PROJECT.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
_CARRIED = [path for path in _WHEEL["force-include"] if path != "deploy/chart"]
"""The chart is in the wheel too, but nothing in the image reads it: it may change alone."""
_RUNTIME = _ROOT / "pe_runtime" / "streamgraft_pe_runtime"
_DRIVERS = (
    *sorted(file for file in (_RUNTIME / "scala").rglob("*") if file.is_file()),
    *(_RUNTIME / name for name in ("build_jar.py", "train_cds.py", "warm_up.py", "conf.py")),
    _ROOT / "common" / "streamgraft_common" / "spark_jvm.py",
    DEPLOY / "streamgraft_local" / "toolchain" / "jars.py",
)
"""What determines the jars of a driver, and which classes it loads."""
_OF_DEBIANS_PYTHON = ("async-timeout",)
"""What 3.11.2 needs beside, and the newer Python that makes the wheels does not."""
_UNUSED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")


def streamgraft(report: Report) -> oci.Image:
    """Return the image for operator, adapter and PEs."""
    cache = Cache(cache_folder(), report)
    base = _base(cache)
    dependencies = _dependencies(base).made(cache, base)
    application = _application(dependencies).made(cache, base, dependencies)
    # Made by our code, but not anew whenever that changes: it holds classes of the JVM.
    jvm = _jvm(dependencies).made(cache, base, dependencies, application)
    layers = [layer.tar for layer in (base, dependencies, jvm, application)]
    return oci.Image(f"{REPOSITORY}:{TAG}", layers, str(_FILE.user), _FILE.environment)


def flights(report: Report, ours: oci.Image) -> oci.Image:
    """Return the image for pods of the flights' application, made of ours as users make theirs."""
    cache = Cache(cache_folder(), report)
    base = _base(cache)
    dependencies = _dependencies(base).made(cache, base)
    data = _flights(dependencies).made(cache, base, dependencies)
    return replace(ours, name=FLIGHTS, layers=[*ours.layers, data.tar])


def pause(report: Report, folder: Path) -> Path:
    """Return the archive of the image that holds pods' namespaces, written to `folder`."""
    root = folder / "pause"
    root.mkdir()
    shutil.copy2(programs.pause(report), root / "pause")
    oci.pack(root, folder / "pause.layer")
    archive = folder / "pause.tar"
    layers = [folder / "pause.layer"]
    oci.write(archive, oci.Image("localhost/pause:1", layers, entrypoint=("/pause",)))
    return archive


def base(report: Report) -> Layer:
    """Return Debian with Java and Python, the lowest layer."""
    return _base(Cache(cache_folder(), report))


def _base(cache: Cache) -> Layer:
    def make(folder: Path) -> None:
        layer = Layer(folder)
        options = ("--variant=minbase", f"--include={','.join(_FILE.packages)}")
        run("making a root", ("debootstrap", *options, "bookworm", str(layer.root), _MIRROR))
        for path in _UNUSED:
            shutil.rmtree(layer.root / path, ignore_errors=True)
        user = ("useradd", "--uid", str(_FILE.user), "--create-home", "streamgraft")
        run("adding the user", ("chroot", str(layer.root), *user))
        oci.pack(layer.root, layer.tar)

    key = key_of(*_FILE.packages, str(_FILE.user))
    return Layer(cache.get("image-base", key, make, "Debian for the image; 2 minutes"))


def _dependencies(base: Layer) -> Addition:
    project = tomllib.loads(_PROJECT.read_text())["project"]
    extras = [project["optional-dependencies"][name] for name in _FILE.extras]
    wanted: list[str] = sum(extras, project["dependencies"])

    def furnish(source: Path) -> None:
        _copy(source, _SCRIPT, _PROJECT, _CONSTRAINTS)
        _wheels(source / "wheels", "-c", str(_CONSTRAINTS), *wanted, *_OF_DEBIANS_PYTHON)

    command = ("sh", _SCRIPT.name, "dependencies", *_FILE.extras)
    inputs = [*_floor(base), *wanted, _CONSTRAINTS.read_bytes()]
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/src/wheels"}
    return Addition("dependencies", command, furnish, inputs, offline)


def _application(dependencies: Layer) -> Addition:
    def furnish(source: Path) -> None:
        _copy(source, _SCRIPT)
        _wheels(source, "--no-deps", str(_ROOT))

    inputs = (*_floor(dependencies), *_content())
    return Addition("application", ("sh", _SCRIPT.name, "application"), furnish, inputs)


def _jvm(dependencies: Layer) -> Addition:
    return Addition(
        "jvm",
        ("sh", _SCRIPT.name, "jvm"),
        lambda source: _copy(source, _SCRIPT),
        (*_floor(dependencies), *(file.read_bytes() for file in _DRIVERS)),
        {"STREAMGRAFT_CACHE": "/cache"},
        {cache_folder(): "/cache"},
    )


def _flights(dependencies: Layer) -> Addition:
    packages = tomllib.loads(_PROJECT.read_text())["dependency-groups"]["demo"]
    install = ("/opt/streamgraft/bin/pip", "install", "--no-index", "--find-links", ".")
    return Addition(
        "flights",
        (*install, "--no-deps", "--no-compile", *packages),
        lambda source: _wheels(source, "--no-deps", *packages),
        _floor(dependencies),
    )


def _floor(layer: Layer) -> list[str | bytes]:
    """Return what each layer on top of this one depends on."""
    return [str(layer.folder), _SCRIPT.read_bytes()]


def _content() -> Iterator[bytes]:
    """Return all that our wheel is made of."""
    sources = (*_WHEEL["packages"], *_CARRIED)
    listed = run("listing sources", ("git", "-C", str(_ROOT), "ls-files", "-z", *sources))
    for name in sorted(filter(None, listed.split("\0"))):
        if (file := _ROOT / name).is_file():
            yield from (name.encode(), file.read_bytes())
    yield _PROJECT.read_bytes()


def _wheels(folder: Path, *wanted: str) -> None:
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "-w", str(folder), *wanted)
    run("making wheels", command)


def _copy(folder: Path, *files: Path) -> None:
    for file in files:
        shutil.copy2(file, folder)
