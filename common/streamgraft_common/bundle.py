"""Bundles: a zip file with `adl.json` at its root, the application's modules and resources.

Reading one never runs user code.
"""

import hashlib
import io
import json
import lzma
import zipfile
import zlib
from dataclasses import dataclass

from pydantic import ValidationError

from streamgraft_common.adl import FORMAT, Adl

ADL_FILE = "adl.json"
LARGEST_CONTENT_BYTES = 256 << 20
"""Of all that a bundle unpacks to: some hundred bytes of zip can hold gigabytes."""
LARGEST_ADL_BYTES = 4 << 20

_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    KeyError,
    ValueError,
    EOFError,
    OSError,
    RuntimeError,  # encrypted, in a compression that Python does not know, or nested too deep
)


class BundleError(Exception):
    """The bundle can't be used; the message says what to do. `reason` is CamelCase."""

    reason = "BundleInvalid"


class BundleCorrupt(BundleError):
    """Not a zip file, damaged, or without a valid ADL."""

    reason = "BundleCorrupt"


class BundleTooNew(BundleError):
    """Written by a newer release than this one."""

    reason = "BundleTooNew"


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read: its description and the sha256 (hex) of its bytes."""

    adl: Adl
    digest: str


def _check_size(archive: zipfile.ZipFile) -> None:
    sizes = {item.filename: item.file_size for item in archive.infolist()}
    if sum(sizes.values()) > LARGEST_CONTENT_BYTES:
        raise BundleCorrupt(
            f"the bundle unpacks to {sum(sizes.values()) >> 20} MiB, more than the"
            f" {LARGEST_CONTENT_BYTES >> 20} that are allowed: put large files on a volume or into"
            " an image"
        )
    if sizes.get(ADL_FILE, 0) > LARGEST_ADL_BYTES:
        raise BundleCorrupt(f"{ADL_FILE} has more than {LARGEST_ADL_BYTES >> 20} MiB")


def read_bundle(data: bytes) -> Bundle:
    """Return the description in a bundle. Raises BundleCorrupt or BundleTooNew."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(archive)
            if damaged := archive.testzip():
                raise BundleCorrupt(f"{damaged} in the bundle is damaged: build it again")
            document = json.loads(archive.read(ADL_FILE))
    except _DAMAGED as error:
        raise BundleCorrupt(
            f"this is no bundle ({error}): make one with `streamgraft build`"
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise BundleCorrupt(f"{ADL_FILE} in the bundle has no format: build it again")
    if document["format"] > FORMAT:
        raise BundleTooNew(
            f"the bundle has format {document['format']} (built by Streamgraft"
            f" {_printable(document.get('builtBy', '?'))}), this operator reads up to {FORMAT}:"
            " upgrade the operator, or build with the older release"
        )
    try:
        adl = Adl.model_validate(document)
    except ValidationError as error:
        raise BundleCorrupt(f"{ADL_FILE} in the bundle is not valid: {error}") from error
    return Bundle(adl, hashlib.sha256(data).hexdigest())


def _printable(text: object) -> str:
    """Return what anybody wrote, in so few characters and such as all that show it can."""
    return str(text)[:100].encode(errors="backslashreplace").decode()
