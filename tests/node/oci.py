"""OCI images from tarred layers, as one archive that `ctr images import` reads.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """An image's layers, and what a container of it is started with."""

    name: str
    """With its tag: `localhost/streamgraft:test`."""
    layers: Sequence[Path]
    """Uncompressed tar files, the lowest first."""
    user: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()

    def config(self, digests: Sequence[str]) -> bytes:
        """Return the image's configuration for layers with these digests."""
        variables = {"PATH": _PATH, **self.environment}
        document = {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "User": self.user,
                "Env": [f"{name}={value}" for name, value in variables.items()],
                "Entrypoint": list(self.entrypoint),
            },
            "rootfs": {"type": "layers", "diff_ids": list(digests)},
        }
        return json.dumps(document).encode()


def write(archive: Path, *images: Image) -> None:
    """Write images to `archive`; a layer that several have is there once."""
    contents: dict[str, bytes] = {}
    layers: dict[str, Path] = {}
    entries = []
    for image in images:
        blobs = [(_digest_of(layer), layer) for layer in image.layers]
        config = image.config([digest for digest, _ in blobs])
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, _digest(config), len(config)),
            "layers": [_descriptor(_LAYER, digest, path.stat().st_size) for digest, path in blobs],
        }
        content = json.dumps(manifest).encode()
        named = {"annotations": {"io.containerd.image.name": image.name}}
        entries.append(_descriptor(_MANIFEST, _digest(content), len(content)) | named)
        contents |= {_digest(data): data for data in (config, content)}
        layers |= dict(blobs)
    index = json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
    with tarfile.open(archive, "w") as output:
        _put(output, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _put(output, "index.json", index)
        for digest, data in contents.items():
            _put(output, _blob(digest), data)
        for digest, path in layers.items():
            output.add(path, _blob(digest))


def pack(folder: Path, layer: Path, inside: str = ".") -> None:
    """Write a folder as a layer that unpacks it at `inside`."""
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as output:
        output.add(folder, inside, filter=_no_device)


def _no_device(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.isdev() else entry


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest, "size": size}


def _blob(digest: str) -> str:
    return digest.replace("sha256:", "blobs/sha256/")


def _put(output: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    output.addfile(entry, io.BytesIO(data))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
