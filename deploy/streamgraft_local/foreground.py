"""The embedded environment as the one process of a container.

`python -m streamgraft_local.foreground`: up, until SIGTERM or Ctrl-C; then down. With --datasource
it tells a Grafana that shares its network where Prometheus is.
"""

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from streamgraft_local.cluster import Cluster
from streamgraft_local.errors import LocalError
from streamgraft_local.progress import Phase, Step


def main() -> None:
    """Hold the environment up."""
    parser = argparse.ArgumentParser(prog="python -m streamgraft_local.foreground")
    parser.add_argument("--datasource", type=Path, help="Grafana's provisioning file to write")
    arguments = parser.parse_args()
    if arguments.datasource:  # whoever waits for it must not take that of the run before
        arguments.datasource.unlink(missing_ok=True)
    ending = {signal.SIGTERM, signal.SIGINT}
    cluster = Cluster()
    try:
        cluster.up(_say)
        if arguments.datasource:
            arguments.datasource.write_text(yaml.safe_dump(datasource(cluster.prometheus_url)))
        # Blocked only now: what was started before must not inherit it.
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        print("The embedded environment is up", flush=True)
        signal.sigwait(ending)
    except LocalError as error:
        sys.exit(str(error))
    finally:
        cluster.down()


def datasource(url: str) -> dict[str, Any]:
    """Return what Grafana reads at its start: the data source of our dashboards."""
    source = {
        "name": "Prometheus",
        "uid": "prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": url,
        "isDefault": True,
        "jsonData": {"timeInterval": "5s"},
    }
    return {"apiVersion": 1, "datasources": [source]}


def _say(step: Step) -> None:
    if step.phase is not Phase.DONE or step.note:
        print(f"{step.name}: {step.phase} {step.note}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
