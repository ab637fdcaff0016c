"""Where the input of an operator is, as functions in a PE find out."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True)
class PortAddress:
    """Where an input is now: a change of fusion or width moves it."""

    topic: str
    """The Kafka topic that feeds it."""
    pe: str
    """Name of the ProcessingElement that reads it."""
    host: str
    """DNS name of that PE's Service."""


def resolve(label: str) -> PortAddress:
    """Return where an operator's input is: `operator.input`, `operator[channel].input` in a region.

    It asks the API server each time: what a label leads to changes, the label does not. Only inputs
    from other PEs have one. Raises LookupError, which names the labels that there are,
    ConnectionError if the API server does not answer, and RuntimeError where no PE is around.
    Source: the two levels of names of the design of PEs (002).
    """
    namespace, job = os.environ.get("STREAMGRAFT_NAMESPACE"), os.environ.get("STREAMGRAFT_JOB")
    if not (namespace and job):
        raise RuntimeError(f"{label} is resolved in a PE only, by functions that get records")
    # In a thread of its own: an event loop may run in that of the caller.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _resolved(namespace, job, label)).result()


async def _resolved(namespace: str, job: str, label: str) -> PortAddress:
    # The client is slow to import, and hardly any application needs it.
    from streamgraft_common import names, port_labels
    from streamgraft_common.kinds import CONFIG_MAP
    from streamgraft_common.kube import KubeClient, Unreachable, account_config

    path = CONFIG_MAP.path(namespace, names.job_config_map(job))
    try:
        async with KubeClient(account_config()) as client:
            found = await client.get(path)
    except Unreachable as error:
        raise ConnectionError(f"{label} can't be resolved now: {error}") from error
    labels = port_labels.parse(found["data"][names.PORT_LABELS_KEY])
    if label not in labels:
        has = ", ".join(labels) or "none"
        raise LookupError(
            f"no input of another PE's stream has the label {label} (these do: {has})"
        )
    place = labels[label]
    pe = names.pe_name(job, place.pe)
    return PortAddress(place.topic, pe, names.pe_host(namespace, job, place.pe))
