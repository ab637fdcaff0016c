"""What a running operator finds around it in its PE: properties and a data folder."""

import os
from collections.abc import Mapping
from pathlib import Path


def properties() -> Mapping[str, str]:
    """Return the application properties: the keys of the job's `appPropertiesSecret`.

    Empty without one, and where no PE is around (when a bundle is built, in unit tests).
    """
    folder = os.environ.get("STREAMGRAFT_APP_PROPERTIES")
    if not folder:
        return {}
    return {
        file.name: file.read_text().rstrip("\n")
        for file in sorted(Path(folder).iterdir())
        if not file.name.startswith(".")
    }


def data_path() -> Path:
    """Return the PE's data folder, which lasts as long as its volume; elsewhere the current one."""
    return Path(os.environ.get("STREAMGRAFT_DATA_PATH") or Path.cwd())
