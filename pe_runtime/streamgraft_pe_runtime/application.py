"""The user's application: unpacked, importable here and in Spark's Python workers, and bound.

A running driver can take up another version of it. Modules of the former version then leave the
module path and the table of modules, and stay as they are for the queries that hold on to them.
"""

import importlib
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, Self, cast

from streamgraft_common.adl import Adl
from streamgraft_common.batches import Cut
from streamgraft_common.bundle import read_bundle
from streamgraft_common.code import code_of_pe
from streamgraft_common.pe_metadata import PeMetadata


class Application(Protocol):
    """What plans need of `streamgraft.Application`."""

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The Python functions of sources, operators and sinks, by operator name."""

    def bind(self, parameters: Mapping[str, str]) -> None:
        """Give the parameters their values; called before any function is."""


class LoadedApplication(Application, Protocol):
    """What the runtime needs of it, beside plans."""

    @property
    def cut_functions(self) -> Mapping[str, Mapping[str, Callable[[Cut], None]]]:
        """What sinks do when a cut is prepared (`prepare`) and complete (`commit`), by sink."""

    def on_cut_request(self, listener: Callable[[str], None]) -> None:
        """Call a listener with the consistent region of each cut that a function asks for, in any
        thread."""

    def on_stream_change(self, listener: Callable[[str, str, Any], None]) -> None:
        """Call a listener with export or import operator, field and value of each change that a
        function asks for, in any thread."""


@dataclass
class Code:
    """A version of the application, in a folder of its own.

    Of all versions one at most is entered: only its modules can be imported.
    """

    adl: Adl
    digest: str
    """sha256 of the bundle."""
    folder: Path
    _modules: dict[str, ModuleType] = field(default_factory=dict)
    """Those that were imported, while it is not entered."""

    @classmethod
    def unpack(cls, bundle: bytes, root: Path) -> Self:
        """Unpack a bundle into a folder below `root`. Raises BundleError."""
        read = read_bundle(bundle)
        folder = root / read.digest
        with zipfile.ZipFile(BytesIO(bundle)) as archive:
            archive.extractall(folder)
        return cls(read.adl, read.digest, folder)

    def remove_earlier(self, kept: Self) -> None:
        """Remove what was unpacked beside it and beside another version, which is kept."""
        for folder in self.folder.parent.iterdir():
            if folder not in (self.folder, kept.folder):
                shutil.rmtree(folder, ignore_errors=True)

    def enter(self) -> LoadedApplication:
        """Import the application; its parameters are still to be bound."""
        sys.path.insert(0, str(self.folder))
        sys.modules.update(self._modules)
        importlib.invalidate_caches()
        module = importlib.import_module(self.adl.module)
        return cast(LoadedApplication, getattr(module, self.adl.application))

    def leave(self) -> None:
        """Take its modules out of reach. Who has some keeps them."""
        self._modules = {
            name: module for name, module in list(sys.modules.items()) if self._holds(module)
        }
        for name in self._modules:
            del sys.modules[name]
        sys.path.remove(str(self.folder))

    def fits(self, pe: PeMetadata) -> bool:
        """Return whether it is the code that a PE is to run."""
        try:
            return not pe.code or code_of_pe(self.adl, self.digest, pe) == pe.code
        except KeyError:
            return False  # it has not all of the operators

    def _holds(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        places = [file] if file else list(getattr(module, "__path__", ()))
        return any(Path(place).is_relative_to(self.folder) for place in places)


def exchanged(before: Code, after: Code) -> LoadedApplication:
    """Leave one version for another. Raises what its import raises; the former one stays then."""
    before.leave()
    try:
        return after.enter()
    except BaseException:
        after.leave()
        before.enter()
        raise
