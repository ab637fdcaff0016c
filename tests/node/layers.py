"""Layers of an image, each made once: what a command adds to the layers below it."""

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.node import oci

from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run

_VARIABLES = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
_SOURCE = "/src"


@dataclass(frozen=True)
class Layer:
    """A folder of the cache with what the layer adds, as files and packed."""

    folder: Path

    @property
    def root(self) -> Path:
        """What it adds, below the root of the image."""
        return self.folder / "root"

    @property
    def tar(self) -> Path:
        """The same, packed."""
        return self.folder / "layer.tar"


@dataclass(frozen=True)
class Addition:
    """A layer on top of others: what a command that runs in their root adds to /opt."""

    name: str
    command: Sequence[str]
    furnish: Callable[[Path], None]
    """Puts what the command needs into the folder in which it runs."""
    inputs: Sequence[str | bytes]
    """What determines the result besides the command: of the layers below, too."""
    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[Path, str] = field(default_factory=dict)
    """Folders of this machine, and where the command sees them."""

    def made(self, cache: Cache, *below: Layer) -> Layer:
        """Return the layer on top of others, the lowest first; made if it is not in the cache."""
        key = key_of(*self.command, *self.inputs)
        note = "a layer of the image; seconds to minutes"
        return Layer(
            cache.get(f"image-{self.name}", key, lambda folder: self._make(folder, below), note)
        )

    def _make(self, folder: Path, below: Sequence[Layer]) -> None:
        layer, source = Layer(folder), folder / "source"
        (layer.root / "etc").mkdir(parents=True)
        # Spark binds to "localhost", which a fresh root does not know.
        (layer.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        source.mkdir()
        self.furnish(source)
        self._run(layer, [floor.root for floor in below], source)
        for path in (*layer.root.iterdir(), *folder.iterdir()):
            if path not in (layer.root, layer.root / "opt"):
                shutil.rmtree(path)
        oci.pack(layer.root / "opt", layer.tar, "opt")

    def _run(self, layer: Layer, below: Sequence[Path], source: Path) -> None:
        """Run the command in the layers below, with the new one on top of them.

        The mounts are in a namespace of their own: nobody outside can remove anything through them.
        """
        inside, scratch = layer.folder / "inside", layer.folder / "scratch"
        for made in (inside, scratch):
            made.mkdir()
        lower = ":".join(str(root) for root in reversed(below))
        options = f"lowerdir={lower},upperdir={layer.root},workdir={scratch}"
        steps = [f"mount -t overlay overlay -o {options} {inside}"]
        binds = {Path("/proc"): "/proc", Path("/dev"): "/dev", source: _SOURCE, **self.mounts}
        for outside, target in binds.items():
            steps.append(f"mkdir -p {inside}{target} && mount --bind {outside} {inside}{target}")
        variables = (f"{name}={value}" for name, value in {**_VARIABLES, **self.variables}.items())
        command = f"cd {_SOURCE} && exec {shlex.join(self.command)}"
        clean = shlex.join(["env", "-i", *variables, "sh", "-c", command])
        steps.append(f"exec chroot {inside} {clean}")
        run(f"making the layer {self.name}", ("unshare", "--mount", "sh", "-c", " && ".join(steps)))
