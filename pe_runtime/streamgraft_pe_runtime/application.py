"""The user's application: unpacked, importable here and in Spark's Python workers, and bound."""

import importlib
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from streamgraft_common.adl import Adl


class Application(Protocol):
    """What the runtime needs of `streamgraft.Application`."""

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The Python functions of sources, operators and sinks, by operator name."""

    def bind(self, parameters: Mapping[str, str]) -> None:
        """Give the parameters their values; called before any function is."""


def unpack(bundle: Path, folder: Path) -> None:
    """Unpack a bundle and put it on the module path.

    Must run before the JVM is started: Spark's Python workers inherit PYTHONPATH from it.
    """
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), inherited]))


def load(adl: Adl) -> Application:
    """Import the application object; its parameters are still to be bound."""
    module = importlib.import_module(adl.module)
    return cast(Application, getattr(module, adl.application))
