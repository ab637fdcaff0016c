"""What the other commands use of the embedded environment, if it is up."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgraft_local import Cluster
    from streamgraft_local.progress import Report


def _running() -> "Cluster | None":
    """Return the embedded environment, or None if it is not up."""
    from streamgraft_local import Cluster

    cluster = Cluster()
    return cluster if cluster.leftovers() else None


def running_kubeconfig() -> Path | None:
    """Return the kubeconfig of the embedded environment, or None if it is not up."""
    cluster = _running()
    return cluster.kubeconfig if cluster else None


def running_adapter() -> str | None:
    """Return the URL of the embedded environment's metrics adapter, or None if it is not up."""
    cluster = _running()
    return cluster.adapter_url if cluster else None


def running_kafka() -> str | None:
    """Return the address of the embedded environment's Kafka, or None if it is not up."""
    cluster = _running()
    return cluster.bootstrap_servers if cluster else None


def offer_tools(report: "Report") -> None:
    """Let builds use the embedded environment's Java, if there is one: its driver starts faster.

    What the user has set stays. Without an environment builds take the machine's own Java, or the
    one that the environment would have.
    """
    from streamgraft_local import Cluster, LocalError
    from streamgraft_local.toolchain import any_java

    if os.environ.get("STREAMGRAFT_JAVA"):
        return
    try:
        tools = Cluster().state().tools
    except LocalError:  # it was never up
        os.environ["STREAMGRAFT_JAVA"] = str(any_java(report))
        return
    os.environ["STREAMGRAFT_JAVA"] = str(tools.java)
    os.environ["STREAMGRAFT_JARS"] = str(tools.driver_jars)
    if tools.cds_archive:
        os.environ["STREAMGRAFT_CDS_ARCHIVE"] = str(tools.cds_archive)
