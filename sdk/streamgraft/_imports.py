"""Which modules an application imports that its PEs would not find: they are neither installed nor
in the bundle under the names by which they are imported."""

import site
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from streamgraft._graph import Notice
from streamgraft._location import Location
from streamgraft._sources import import_line

_OF_IMAGES = ("pyspark", "py4j")
"""Packages that each PE has, wherever a build has them from."""


def top_level() -> set[str]:
    """Return the first parts of the names of all modules that are loaded."""
    return {name.partition(".")[0] for name in sys.modules}


def not_installed(known: Collection[str]) -> dict[str, str]:
    """Return the files of modules that are loaded and not installed, by their names. `known`: first
    parts of names that are none of the application's."""
    found = {}
    ignored, places = {*known, *_OF_IMAGES}, _places()
    for module in list(sys.modules.values()):
        name = getattr(getattr(module, "__spec__", None), "name", None)
        file = getattr(module, "__file__", None)
        if name and file and name.partition(".")[0] not in ignored:
            path = Path(file)
            if path.is_file() and not _is_within(path, places):
                found[name] = file
    return found


def _places() -> set[Path]:
    """Return the folders of what is installed: lib64 may be a link to lib."""
    folders = [*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return {path for folder in folders for path in (Path(folder), Path(folder).resolve())}


def _is_within(file: Path, places: Collection[Path]) -> bool:
    real = file.resolve()  # a file may be a link to an installer's cache
    return any(path.is_relative_to(place) for path in (file, real) for place in places)


def left_out(
    module: Path, imported: Mapping[str, str], bundle: Mapping[str, Path]
) -> Iterator[Notice]:
    """Yield what an application's `module` has `imported` and will not find, once for each
    top-level package. `bundle`: its files by their path in it."""
    told = set[str]()
    # Of a package rather a module that is imported than what is imported with it.
    for name in sorted(imported, key=lambda name: (name.partition(".")[0], "." not in name, name)):
        file, top = Path(imported[name]), name.partition(".")[0]
        expected = _path_in_bundle(name, file)
        if top in told or str(expected) in bundle:
            continue
        told.add(top)
        importing = ((path, import_line(path, top)) for path in _sources(module, bundle))
        places = [Location(str(path), line) for path, line in importing if line]
        place = places[0] if places else Location(str(module), 1)
        yield Notice(place, _told(module, name, file, expected))


def _told(module: Path, name: str, file: Path, expected: Path) -> str:
    top, folder = expected.parts[0], module.parent
    package = file
    if file.parts[-len(expected.parts) :] == expected.parts:
        package = file.parents[len(expected.parts) - 1] / top
    if folder.is_relative_to(package) and file.is_relative_to(folder) and "." in name:
        by_itself = ".".join(file.relative_to(folder).with_suffix("").parts)
        return (
            f"{name} is in the bundle as {by_itself}: import it by that name, or the image must"
            f" have {top}"
        )
    shown = package.relative_to(folder) if package.is_relative_to(folder) else package
    return (
        f"{top} ({shown}) is not in the bundle: the image must have it, or put it beside"
        f" {module.name}"
    )


def _path_in_bundle(name: str, file: Path) -> Path:
    parts = name.split(".")
    if file.name.startswith("__init__."):
        return Path(*parts, file.name)
    return Path(*parts[:-1], file.name)


def _sources(module: Path, bundle: Mapping[str, Path]) -> Iterator[Path]:
    """Yield the Python files of a bundle, the application's module first."""
    yield module
    yield from (path for name, path in bundle.items() if name.endswith(".py"))
