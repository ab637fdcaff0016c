"""What a running operator finds around it in its PE: properties, a data folder, and a way out."""

import os
import signal
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


def shutdown_pe() -> None:
    """End the PE that runs this function, for good if `restartCompletedPod` is false.

    For what is called with records: sink functions, and functions of rows (UDFs). The PE ends
    behind the batch that runs, with exit code 0. Elsewhere (when a bundle is built, in unit tests)
    nothing happens. Source: `shutdownPe()` of cloud native Streams (003, "Pods").
    """
    if driver := os.environ.get("STREAMGRAFT_DRIVER_PID"):
        os.kill(int(driver), signal.SIGUSR1)
