"""Brings the demo's environment up: a process of its own, so that it can be ended at any time.

The work of `up` runs in threads, which can't be interrupted; a process can.
"""

import sys
from pathlib import Path

from examples.flights.settings import Settings
from streamgraft_local import Cluster, Display, LocalError


def main() -> None:
    """Start everything, showing what is built and started: `… BASE`."""
    cluster = Cluster(Settings(base=Path(sys.argv[1])).cluster)
    try:
        with Display() as display:
            cluster.up(display.report)
    except LocalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
