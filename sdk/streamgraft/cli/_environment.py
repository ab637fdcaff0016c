"""`streamgraft up`, `down` and `status`: the embedded environment."""

from pathlib import Path


def running_kubeconfig() -> Path | None:
    """Return the kubeconfig of the embedded environment, or None if it is not up."""
    return None


def up() -> None:
    raise NotImplementedError


def down() -> None:
    raise NotImplementedError


def status() -> None:
    raise NotImplementedError
