"""Runs the operator: `python -m streamgraft_operator --help`."""

import argparse
import asyncio
import json
import logging
import signal
import socket
import sys
import uuid
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from streamgraft_common.kube import KubeClient, account_config
from streamgraft_common.kube.config import ConfigError
from streamgraft_common.resources import CheckpointRepository, PullPolicy, TransportSecurity
from streamgraft_operator import assembly
from streamgraft_operator.certificates import Issuer
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.leadership import Elector, FencedClient, Term, replica
from streamgraft_operator.settings import Settings


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="streamgraft_operator", description=__doc__)
    add = found.add_argument
    add("--kubeconfig", help="default: $KUBECONFIG, else in-cluster")
    add("--bootstrap-servers", required=True, help="Kafka of jobs that name none")
    add(
        "--checkpoint-volume",
        required=True,
        type=json.loads,
        metavar="JSON",
        help="volume source that all PEs share: '{\"persistentVolumeClaim\": {…}}'",
    )
    add("--kafka-tls", action="store_true", help="those brokers speak TLS")
    add("--kafka-secret", help="credentials for them, in each namespace with jobs; needs TLS")
    add("--checkpoint-root", type=Path, help="where the operator sees that volume")
    add(
        "--checkpoint-repository",
        type=_repository,
        metavar="JSON",
        help="where savepoints are kept besides, of jobs that name no repository: '{\"s3\": {…}}'",
    )
    add("--driver-starts", type=_count, help="drivers that a region starts at a time; default: all")
    add("--image", required=True, help="image of the PE runtime")
    add(
        "--image-pull-secret",
        action="append",
        default=[],
        metavar="SECRET",
        help="credentials of its registry, in each namespace with jobs; repeatable",
    )
    add("--image-pull-policy", choices=get_args(PullPolicy), help="default: Kubernetes' own rule")
    add("--namespace", nargs="*", action="extend", default=[], help="namespaces; default: all")
    add(
        "--pod-security",
        choices=("restricted", "privileged"),
        default="restricted",
        help="pod security standard that users' pod templates must keep to",
    )
    add(
        "--bundle-network",
        nargs="*",
        action="extend",
        default=[],
        type=_network,
        metavar="CIDR",
        help="private networks that bundles may be fetched from",
    )
    add("--lease", default="streamgraft-operator", help="the lease that replicas compete for")
    add("--own-namespace", help="of its lease and its authority; default: where it runs")
    add("--lease-seconds", type=int, default=15, help="how long a dead leader is waited for")
    add("--metrics-port", type=int, required=True)
    add(
        "--metrics-address",
        default="127.0.0.1",
        help="empty: all addresses, of IPv4 and of IPv6 (default: %(default)s)",
    )
    add("--log-level", default="INFO")
    return found


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the settings from the command line; exits with a usage message if they are wrong."""
    line = parser()
    arguments = line.parse_args(words)
    if arguments.kafka_secret and not arguments.kafka_tls:
        line.error("--kafka-secret needs --kafka-tls: credentials go by TLS only")
    return arguments


def _security(arguments: argparse.Namespace) -> TransportSecurity:
    if not arguments.kafka_tls:
        return TransportSecurity()
    return TransportSecurity(type="TLS", kafka_secret=arguments.kafka_secret)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def _network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _repository(text: str) -> CheckpointRepository:
    try:
        return CheckpointRepository.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise argparse.ArgumentTypeError(f"{where}{first['msg']}") from error


async def _run(arguments: argparse.Namespace) -> None:
    config = account_config(arguments.kubeconfig)
    settings = Settings(
        bootstrap_servers=arguments.bootstrap_servers,
        checkpoint_volume=arguments.checkpoint_volume,
        image=arguments.image,
        image_pull_secrets=tuple(arguments.image_pull_secret),
        image_pull_policy=arguments.image_pull_policy,
        checkpoint_root=arguments.checkpoint_root,
        driver_starts=arguments.driver_starts,
        own_namespace=arguments.own_namespace or config.namespace,
        pod_security=arguments.pod_security,
        bundle_networks=tuple(arguments.bundle_network),
        namespaces=tuple(arguments.namespace),
        transport_security=_security(arguments),
        repository=arguments.checkpoint_repository,
    )
    lease = settings.own_namespace, arguments.lease
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with (
        KubeClient(config) as plain,
        metrics.served(arguments.metrics_address, arguments.metrics_port),
    ):
        elector = Elector(plain, lease, _identity(), Term(arguments.lease_seconds))
        async with FencedClient(config, elector.leading) as client:
            await replica.run(elector, partial(operate, client, settings), stopping)
    logging.getLogger(__name__).info("stopped")


async def operate(client: KubeClient, settings: Settings, stopping: asyncio.Event) -> None:
    """Do what the one replica does that leads, until `stopping`."""
    await Issuer(client, settings.own_namespace).prepare()
    await assembly.run(client, settings, stopping)


def _identity() -> str:
    """Return a name that no other replica has, nor this one after a restart."""
    return f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"


def main() -> None:
    """Operate until SIGTERM or SIGINT."""
    arguments = arguments_of()
    logging.basicConfig(
        level=arguments.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        asyncio.run(_run(arguments))
    except ConfigError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
