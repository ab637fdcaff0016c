"""Which files belong into a bundle: the module, what it imports from its folder, and data."""

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from streamgraft._errors import BuildError
from streamgraft_common.bundle import ADL_FILE


def collect(module: Path, imported: Iterable[str], include: Iterable[Path]) -> dict[str, Path]:
    """Return the bundle's files by their path in it.

    They are the module, every module and whole package that it imports from its own folder,
    directly or not, wherever the import stands; what was `imported` by other means; and `include`d
    files and folders. An included path below the module's folder keeps its place, another one
    comes to the root. Hidden files and caches are left out. Raises BuildError.
    """
    folder = module.parent
    found = {str(path.relative_to(folder)): path for path in reachable(module, folder)}
    found |= {name: folder / name for name in imported}
    for path in include:
        path = path.absolute()
        base = folder if path.is_relative_to(folder) else path.parent
        for file in _files(path):
            name = str(file.relative_to(base))
            if found.setdefault(name, file) != file:
                raise BuildError(f"--include {path}: {name} is in the bundle already")
    if ADL_FILE in found:
        raise BuildError(f"{ADL_FILE} is the name of the description: rename {found[ADL_FILE]}")
    return dict(sorted(found.items()))


def reachable(module: Path, folder: Path) -> set[Path]:
    """Return a file and what it imports from a folder, directly or not."""
    pending, found = [module], set[Path]()
    while pending:
        file = pending.pop()
        if file in found:
            continue
        found.add(file)
        if file.suffix == ".py":
            for name, _ in _imports(file):
                pending.extend(local_files(folder, name))
    return found


def import_line(file: Path, top: str) -> int | None:
    """Return the first line of a file that imports a top-level module or something of it."""
    lines = [line for name, line in _imports(file) if name.partition(".")[0] == top]
    return min(lines, default=None)


def parsed(file: Path) -> ast.Module | None:
    """Return a file's statements; None if it is no Python of this version: a template, say. What is
    imported of those has failed before."""
    try:
        return ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError):  # ValueError: zeros in it
        return None


def _imports(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the names of modules that a file imports, with their lines."""
    tree = parsed(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno


def local_files(folder: Path, name: str) -> list[Path]:
    """Return the files in a folder of the module or the whole package that a name begins with."""
    top = name.partition(".")[0]
    package, single = folder / top, folder / f"{top}.py"
    if package.is_dir() and (files := list(_files(package))):
        return files if any(file.suffix == ".py" for file in files) else []
    return [single] if single.is_file() else []


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for place, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not _left_out(name))
        yield from (Path(place) / name for name in sorted(files) if not _left_out(name))


def _left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__" or name.endswith(".pyc")
