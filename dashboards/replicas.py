"""The panel that each of our own Deployments has."""

from dashboards.model import Panel, Query


def replicas(job: str) -> Panel:
    """Return how many replicas answer, by their job in Prometheus."""
    return Panel(
        "Replicas",
        "Replicas that answer Prometheus.",
        "short",
        (Query(f'sum(up{{job="{job}"}})', "up"),),
        alarm=1,
        falls=True,
        number=True,
    )
