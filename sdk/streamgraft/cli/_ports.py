"""`streamgraft ports`: where the inputs of operators are."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rich.console import Console

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import connected
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft.cli._tables import table
from streamgraft_common import names, port_labels
from streamgraft_common.kube.client import Object


@dataclass(frozen=True)
class Port:
    """One input that crosses PEs."""

    input: str
    topic: str
    pe: str
    control_port: str
    pod: str


def run(target: Target, job: str, operator: str | None, form: str) -> None:
    """Print the topic, the PE and the address of every input that crosses PEs."""
    found = asyncio.run(_ports(target, job, operator))
    if form != "text":
        output.document([asdict(port) for port in found], form)
        return
    rows = table(f"Ports of {job}", "Input", "Topic", "PE", "Control port", "Pod now")
    for port in found:
        rows.add_row(port.input, port.topic, port.pe, port.control_port, port.pod)
    Console().print(rows)


async def _ports(target: Target, job: str, operator: str | None) -> list[Port]:
    async with connected(target) as cluster:
        namespace = cluster.namespace
        config_map = await cluster.client.find(
            cluster.core("configmaps", names.job_config_map(job))
        )
        if config_map is None:
            raise CommandError(f"no job {job} is submitted in namespace {namespace}")
        pods = await cluster.of_job(cluster.core("pods"), job)
    labels = port_labels.parse(config_map["data"][names.PORT_LABELS_KEY])
    known = {label: port_labels.operator_of(label) for label in labels}
    if operator and operator not in known.values():
        has = ", ".join(sorted(set(known.values()))) or "none"
        raise CommandError(
            f"no operator {operator} of job {job} reads a stream of another PE (these do: {has})"
        )
    by_pe = {pod["metadata"]["labels"].get(names.LABEL_PE): pod for pod in pods}
    found: list[Port] = []
    for label, place in labels.items():
        if operator in (None, known[label]):
            pe = names.pe_name(job, place.pe)
            pod = by_pe.get(pe)
            host = names.pe_host(namespace, job, place.pe)
            control = f"{_scheme(pod)}://{host}:{names.CONTROL_PORT}"
            found.append(Port(label, place.topic, pe, control, _place(pod)))
    return found


def _scheme(pod: Object | None) -> str:
    annotations: Mapping[str, str] = pod["metadata"].get("annotations", {}) if pod else {}
    return annotations.get(names.ANNOTATION_SCHEME, "http")


def _place(pod: Object | None) -> str:
    if pod is None:
        return "none"
    address = pod.get("status", {}).get("podIP", "no address yet")
    return f"{pod['metadata']['name']} ({address})"
