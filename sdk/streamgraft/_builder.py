"""Make a bundle from an application's module: the same input gives the same bytes."""

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from streamgraft._built import Built
from streamgraft._errors import BuildError, BundleTooLarge, raise_all
from streamgraft._imports import left_out
from streamgraft._sources import collect
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import ADL_FILE

MAX_CONFIG_MAP_BYTES = 900_000
"""Largest bundle that `submit` uploads: base64 and metadata must stay below etcd's 1.5 MiB, and a
ConfigMap's data below 1 MiB."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member: zip's own zero."""


@dataclass(frozen=True)
class BuiltBundle:
    """A bundle: its bytes, its description, the files in it and what is probably not meant."""

    data: bytes
    adl: Adl
    files: list[str]
    notices: list[str]


def build(
    path: Path | str,
    *,
    include: Iterable[Path | str] = (),
    parameters: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bundle of the application in a Python file, with further files or folders.

    The module is imported and planned in a process of its own; no query runs. `parameters`: the
    submission-time values that it is planned with, where they are not the defaults. Raises
    ApplicationError if the application is wrong, BuildError if it can't be bundled.
    """
    return build_bundle(Path(path), [Path(item) for item in include], parameters).data


def build_bundle(
    path: Path,
    include: Sequence[Path] = (),
    parameters: Mapping[str, str] | None = None,
) -> BuiltBundle:
    """Return the bundle with what the build found out. Raises as `build` does."""
    module = path.absolute()
    if not module.exists():
        raise BuildError(f"{path}: there is no such file")
    if not module.is_file() or module.suffix != ".py":
        raise BuildError(f"{path}: name the Python file that holds the application")
    if not module.stem.isidentifier():
        raise BuildError(
            f"{path}: {module.stem} can't be imported: rename the file to letters, digits and _,"
            " as my_app.py"
        )
    if missing := [str(item) for item in include if not item.exists()]:
        raise BuildError(f"--include {', '.join(missing)}: there is no such file or folder")
    if find_spec("pyspark") is None:
        raise BuildError(
            f"{path} can't be planned without Spark: install Streamgraft with the extra `spark`"
            " (from its checkout: pip install '.[spark]')"
        )
    built = _built(module, parameters)
    if built.failure:
        raise BuildError(f"{path} can't be planned: {built.failure}; it needs Java 17 or newer")
    raise_all([finding.error() for finding in built.errors])
    assert built.adl is not None
    sources = collect(module, built.modules, include)
    members = {name: file.read_bytes() for name, file in sources.items()}
    adl = _with_data(built.adl, members)
    description = adl.model_dump_json(by_alias=True, exclude_none=True, indent=1)
    data = _zip({ADL_FILE: description.encode(), **members})
    missing = [str(item) for item in left_out(module, built.not_installed, sources)]
    return BuiltBundle(data, adl, list(members), [*built.notices, *missing])


def check_size(data: bytes) -> None:
    """Raise BundleTooLarge if a ConfigMap can't carry the bundle."""
    if len(data) > MAX_CONFIG_MAP_BYTES:
        raise BundleTooLarge(
            f"the bundle has {len(data):,} bytes, a ConfigMap carries {MAX_CONFIG_MAP_BYTES:,}:"
            " leave data out of it, or put it on a volume that operator and PEs share and name it"
            " in the Job's spec.bundle.file"
        )


def _built(module: Path, parameters: Mapping[str, str] | None) -> Built:
    with tempfile.TemporaryDirectory(prefix="streamgraft-build-") as folder:
        target = Path(folder, "built.json")
        command = [
            sys.executable,
            "-P",
            "-m",
            "streamgraft._build_process",
            str(module),
            str(target),
            json.dumps(dict(parameters or {})),
        ]
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if not target.exists():
            raise BuildError(
                f"{module.name}: the build ended with exit code {process.returncode}:"
                f" {process.stderr.strip()[-2000:]}"
            )
        return Built.model_validate_json(target.read_bytes())


def _with_data(adl: Adl, members: Mapping[str, bytes]) -> Adl:
    """Return the description with what is no Python source: any function may read it."""
    data = {name: members[name] for name in sorted(members) if not name.endswith(".py")}
    seen = hashlib.sha256()
    for name, content in data.items():
        seen.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    operators = [
        item.model_copy(update={"code": f"{item.code}-{seen.hexdigest()[:16]}"})
        if data and item.code
        else item
        for item in adl.operators
    ]
    fixed = [name for name in data if name.endswith(tuple(EXTENSION_SUFFIXES))]
    return adl.model_copy(update={"operators": operators, "fixed_code": fixed})


def _zip(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
