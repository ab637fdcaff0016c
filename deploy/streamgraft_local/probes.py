"""Questions that tell whether a component serves: a short text why not yet, or None."""

import asyncio
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamgraft_common.kube import ApiError, KubeClient, Unreachable, load_config

Probe = Callable[[], str | None]


def http(url: str, authority: Path | None = None, client: Path | None = None) -> Probe:
    """Return a probe that wants status 200; servers under https are verified by `authority`, and
    shown the certificate `client` (a path without `.crt` and `.key`)."""

    def probe() -> str | None:
        context = ssl.create_default_context(cafile=str(authority)) if authority else None
        if context and client:
            context.load_cert_chain(f"{client}.crt", f"{client}.key")
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(url, timeout=2):
                return None
        except urllib.error.HTTPError as error:
            with error:
                return f"{url}: {error.code} {error.read(200).decode(errors='replace')}"
        except OSError as error:
            return f"{url}: {error}"

    return probe


def kafka(bootstrap_servers: str) -> Probe:
    """Return a probe that wants the broker to answer a metadata request."""

    def probe() -> str | None:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap_servers,
            "log_level": 0,
        }
        client = AdminClient(settings, logger=None)
        client.poll(0)
        try:
            brokers = client.list_topics(timeout=2).brokers
        except KafkaException as error:
            return f"{bootstrap_servers}: {error.args[0]}"
        return None if brokers else f"{bootstrap_servers}: no broker"

    return probe


def node_ready(kubeconfig: Path, name: str) -> Probe:
    """Return a probe that wants the Node object's condition Ready."""

    async def read() -> dict[str, Any]:
        async with KubeClient(load_config(kubeconfig), timeout_seconds=5) as client:
            return await client.get(f"/api/v1/nodes/{name}")

    def probe() -> str | None:
        try:
            conditions = asyncio.run(read()).get("status", {}).get("conditions") or []
        except (ApiError, Unreachable) as error:
            return str(error)
        ready = {item["type"]: item["status"] for item in conditions}.get("Ready")
        return None if ready == "True" else f"condition Ready of node {name} is {ready}"

    return probe
