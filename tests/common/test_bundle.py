"""Reading bundles: what is wrong is said, with what to do."""

import io
import json
import zipfile

import pytest

from streamgraft_common.adl import FORMAT
from streamgraft_common.bundle import ADL_FILE, BundleCorrupt, BundleTooNew, read_bundle

ADL = {
    "format": FORMAT,
    "name": "app",
    "builtBy": "0.1.0",
    "module": "app",
    "application": "app",
    "operators": [],
    "streams": [],
}


def zipped(document: object) -> bytes:
    """Return a bundle whose adl.json is `document`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("adl.json", json.dumps(document))
    return buffer.getvalue()


def test_reads_description_and_digest() -> None:
    """The digest is of the bytes, so any change shows."""
    bundle = read_bundle(zipped(ADL))
    assert bundle.adl.name == "app"
    assert len(bundle.digest) == 64


def test_not_a_zip() -> None:
    """Any other file is refused."""
    with pytest.raises(BundleCorrupt, match="streamgraft build"):
        read_bundle(b"nonsense")


def test_damaged_zip() -> None:
    """A flipped byte in the content is found."""
    data = bytearray(zipped(ADL))
    data[45] ^= 0xFF
    with pytest.raises(BundleCorrupt):
        read_bundle(bytes(data))


def _bomb(name: str, size: int) -> bytes:
    buffer = io.BytesIO()
    deflated = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)
    with deflated as archive, archive.open(name, "w") as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "mebibytes", "words"),
    [("data.bin", 257, "unpacks to 257 MiB"), (ADL_FILE, 5, "has more than 4 MiB")],
)
def test_small_files_that_become_large(name: str, mebibytes: int, words: str) -> None:
    """What a bundle unpacks to is known before it is unpacked."""
    bomb = _bomb(name, mebibytes << 20)
    assert len(bomb) < 300_000
    with pytest.raises(BundleCorrupt, match=words):
        read_bundle(bomb)


def test_deep_nesting() -> None:
    """JSON that no parser can follow is refused like any other nonsense."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ADL_FILE, "[" * 1_000_000)
    with pytest.raises(BundleCorrupt, match="streamgraft build"):
        read_bundle(buffer.getvalue())


@pytest.mark.parametrize("document", [[], {}, {**ADL, "format": "1"}, {**ADL, "operators": 3}])
def test_invalid_description(document: object) -> None:
    """A description that is not one is refused."""
    with pytest.raises(BundleCorrupt):
        read_bundle(zipped(document))


def test_newer_format() -> None:
    """A bundle of a newer release says so instead of being misread."""
    with pytest.raises(BundleTooNew, match="upgrade the operator"):
        read_bundle(zipped({**ADL, "format": FORMAT + 1, "somethingNew": 1}))
