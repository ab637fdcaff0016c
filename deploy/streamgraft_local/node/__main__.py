"""`python -m streamgraft_local.node`: run a process node until SIGTERM or SIGINT."""

import argparse
import asyncio
import contextlib
import fcntl
import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.quantities import parse
from streamgraft_local.node.addresses import CAPACITY
from streamgraft_local.node.metrics_api import MetricsEndpoint
from streamgraft_local.node.node import ProcessNode
from streamgraft_local.node.settings import NodeSettings


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return name, value


def _quantity(text: str) -> str:
    try:
        parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m streamgraft_local.node", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True, help="folder for logs and volumes")
    parser.add_argument("--name", required=True, help="name of the Node object")
    parser.add_argument(
        "--client-ca",
        type=Path,
        required=True,
        metavar="FILE",
        help="authority of those who may read logs: the API server",
    )
    parser.add_argument(
        "--image-env",
        type=_variable,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="variable that every container gets, as from its image; may be repeated",
    )
    parser.add_argument("--cpu", type=_quantity, default="64", help="for the scheduler only")
    parser.add_argument("--memory", type=_quantity, default="256Gi", help="for the scheduler only")
    parser.add_argument(
        "--shutdown-grace",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="longest that a pod may take to end when the node is stopped",
    )
    _add_metrics(parser.add_argument_group("metrics.k8s.io, served where a port is given"))
    return parser.parse_args()


def _add_metrics(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--metrics-port", type=int)
    for name, what in (
        ("cert", "certificate of the server"),
        ("key", "its key"),
        ("client-ca", "authority of the clients that are answered: the API server's front proxy"),
    ):
        group.add_argument(f"--metrics-{name}", type=Path, metavar="FILE", help=what)


def _metrics(arguments: argparse.Namespace) -> MetricsEndpoint | None:
    if arguments.metrics_port is None:
        return None
    files = (arguments.metrics_cert, arguments.metrics_key, arguments.metrics_client_ca)
    if None in files:
        sys.exit("--metrics-port needs --metrics-cert, --metrics-key and --metrics-client-ca")
    return MetricsEndpoint(arguments.metrics_port, *files)


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Hold a node's folder: two nodes would both run its pods."""
    with open(home / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another process node uses {home}")
        yield


async def _serve(arguments: argparse.Namespace, home: Path) -> None:
    settings = NodeSettings(
        name=arguments.name,
        home=home,
        client_ca=arguments.client_ca,
        image_variables=dict(arguments.image_env),
        capacity={
            "cpu": arguments.cpu,
            "memory": arguments.memory,
            "ephemeral-storage": "100Gi",
            "pods": str(CAPACITY),
        },
        metrics=_metrics(arguments),
    )
    async with KubeClient(load_config(arguments.kubeconfig)) as client:
        node = ProcessNode(client, settings)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, node.stop, arguments.shutdown_grace)
        await node.run()


def main() -> None:
    """Run the node in the foreground."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    arguments = _arguments()
    home = arguments.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home):
        asyncio.run(_serve(arguments, home))


if __name__ == "__main__":
    main()
