"""`streamgraft up`, `down` and `status`: the embedded environment."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

from streamgraft.cli import _output as output

if TYPE_CHECKING:
    from streamgraft_local import Cluster


def up() -> None:
    """Start everything that does not run yet, and say where it is."""
    from streamgraft.cli._console import link
    from streamgraft.cli._options import Target
    from streamgraft.cli._progress import display
    from streamgraft_local import Cluster

    cluster = Cluster()
    with display() as steps:
        cluster.up(steps.report)
    _say_where(cluster)
    console = asyncio.run(link(Target(), None, None))
    output.say(f"Console     {console}")
    output.result({"addresses": _addresses(cluster), "console": console})


def _addresses(cluster: "Cluster") -> dict[str, str]:
    return {
        "api_server": cluster.api_url,
        "kafka": cluster.bootstrap_servers,
        "prometheus": cluster.prometheus_url,
        "kubeconfig": str(cluster.kubeconfig),
    }


def _say_where(cluster: "Cluster") -> None:
    known = _addresses(cluster)
    output.say(f"API server  {known['api_server']}")
    output.say(f"Kafka       {known['kafka']}")
    output.say(f"Prometheus  {known['prometheus']}")
    output.say(f"kubectl     export KUBECONFIG={known['kubeconfig']}")


def down(delete: bool) -> None:
    """End everything that runs; with `delete` forget what it kept."""
    from streamgraft.cli._progress import display
    from streamgraft_local import Cluster

    with display() as steps:
        Cluster().down(delete=delete, report=steps.report)
    output.say("The embedded environment is down" + (", its data deleted" if delete else ""))


def status(form: str) -> None:
    """Show each component and, if any runs, where they are; exit code 1 if one does not serve."""
    from rich.console import Console

    from streamgraft.cli._tables import table
    from streamgraft_local import Cluster, LocalError

    cluster = Cluster()
    runs = bool(cluster.leftovers())
    try:
        components = cluster.status()
    except LocalError:  # it was never up
        if form != "text" and not runs:
            output.document({"components": [], "addresses": None}, form)
        raise
    if form == "text":
        rows = table("Embedded environment", "Component", "State", "Process")
        for item in components:
            rows.add_row(item.name, item.problem or "serves", str(item.pid or ""))
        Console().print(rows)
        if runs:
            _say_where(cluster)
    else:
        shown = [{**asdict(item), "log": str(item.log)} for item in components]
        addresses = _addresses(cluster) if runs else None
        output.document({"components": shown, "addresses": addresses}, form)
    if failing := [item for item in components if item.problem]:
        logs = ", ".join(str(item.log) for item in failing)
        raise output.CommandError(f"{len(failing)} component(s) do not serve; see {logs}")
