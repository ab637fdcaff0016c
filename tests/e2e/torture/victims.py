"""What happens to the parts of a cluster without warning: pods of a job, operator, broker, API."""

import asyncio
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from tests.e2e.torture.job import TorturedJob
from tests.e2e.torture.patience import answered
from tests.e2e.torture.schedule import PLACES, Kill, Victim

from bench.pods import process_of
from streamgraft_common import names
from streamgraft_common.kube import NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PROCESSING_ELEMENT, ProcessingElementStatus
from streamgraft_local.processes import Process


class Outsider(Protocol):
    """A program beside the cluster that the job needs."""

    async def suffer(self, kill: Kill) -> None:
        """Do to it what a kill says; it serves again when this returns."""


class Killer:
    """Kills parts of a cluster, and starts those again that nothing in it starts."""

    def __init__(
        self,
        job: TorturedJob,
        repository: Outsider | None = None,
        amid: Mapping[Victim, Callable[[], int | None]] | None = None,
    ) -> None:
        """`amid` blocks, by the place of a pod, until one is in the midst of what a kill should
        break off, and returns which shard of the region it does it for, if it knows."""
        self._amid = amid or {}
        self._cluster = job.cluster
        self._client = job.client
        self._pes = PROCESSING_ELEMENT.path(job.namespace)
        self._pods = f"/api/v1/namespaces/{job.namespace}/pods"
        self._selector = f"{names.LABEL_JOB}={job.name}"
        self._repository = repository

    async def kill(self, kill: Kill) -> str | None:
        """Do it after the time that was chosen, and wait until it is over; return to what.

        None: there was no pod that it could have been done to.
        """
        await asyncio.sleep(kill.after)
        if kill.victim in PLACES:
            return await self._strike_pod(kill)
        if kill.victim == "repository":
            assert self._repository is not None
            await self._repository.suffer(kill)
        else:
            await self._strike_program(kill)
        return kill.victim

    async def _strike_pod(self, kill: Kill) -> str | None:
        """Strike the processes of a pod of that place, if one runs."""
        found = await answered(lambda: self._client.get(self._pods, labelSelector=self._selector))
        pods = [pod for pod in of_place(found["items"], kill.victim) if _pid(pod)]
        if not pods:
            return None
        pod = pods[int(kill.choice * len(pods))]
        if kill.means == "delete":
            with suppress(NotFound):
                await answered(lambda: self._client.delete(f"{self._pods}/{_name(pod)}"))
        else:
            pod = await self._strike_family(pod, pods, kill)
        return f"pod {_name(pod)}"

    async def _strike_family(self, chosen: Object, pods: Sequence[Object], kill: Kill) -> Object:
        """Strike the processes of the pod that is amid its work, else of the chosen one."""
        families = {_name(pod): _family(_pid(pod) or 0) for pod in pods}
        pod = chosen
        if amid := self._amid.get(kill.victim):
            owners = await self._owners()
            shard = await asyncio.to_thread(amid)
            pod = next((item for item in pods if _name(item) == owners.get(shard)), chosen)
        await strike(families[_name(pod)], kill)
        return pod

    async def _owners(self) -> dict[int | None, str]:
        """Return the pod that holds each shard of the region."""
        selector = f"{self._selector},{names.LABEL_REGION}"
        listed = await answered(lambda: self._client.get(self._pes, labelSelector=selector))
        states = [
            ProcessingElementStatus.model_validate(pe.get("status", {})) for pe in listed["items"]
        ]
        runtimes = [state.runtime for state in states if state.runtime]
        return {int(shard): item.pod for item in runtimes for shard in item.shards}

    async def _strike_program(self, kill: Kill) -> None:
        process = Process.load(self._cluster.home.record(kill.victim))
        assert process is not None
        await strike([process], kill)
        if kill.means == "kill":
            while process.alive():
                await asyncio.sleep(0.01)
            await asyncio.to_thread(self._cluster.start, kill.victim)


async def strike(processes: Sequence[Process], kill: Kill) -> None:
    """Do to processes, parents first, what a kill says; what passes is over when it returns."""
    if kill.means == "freeze":
        _send(processes, signal.SIGSTOP)
        try:
            await asyncio.sleep(kill.seconds)
        finally:
            _send(processes, signal.SIGCONT)
    elif kill.means == "disk":
        with full_disk(processes):
            await asyncio.sleep(kill.seconds)
    else:
        _end(processes, kill)


def _end(processes: Sequence[Process], kill: Kill) -> None:
    """Kill the driver's JVM, and what started it unless that is to see it die.

    The JVM first: in a container all die at once, and it is the one that writes.
    """
    doomed = processes[1:] or processes if kill.means == "memory" else processes
    _send(doomed[::-1], signal.SIGKILL)


@contextmanager
def full_disk(processes: Sequence[Process]) -> Iterator[None]:
    """Let processes write nothing more into any file meanwhile."""
    limits = {process: _limit(process, 0) for process in processes}
    try:
        yield
    finally:
        for process, before in limits.items():
            if before is not None:
                _limit(process, before)


def _limit(process: Process, size: int) -> int | None:
    """Set how long a file of a process may get; return what it was, None if it has ended."""
    if not process.alive():
        return None
    with suppress(ProcessLookupError):
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))
        return soft
    return None


def _send(processes: Sequence[Process], number: signal.Signals) -> None:
    for process in processes:
        process.send(number)


def _family(pid: int) -> list[Process]:
    """Return the process of a pod's container and its children: the driver's JVM."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [item for each in (pid, *map(int, children)) if (item := Process.of(each))]
    return []


def of_place(pods: list[Object], victim: Victim) -> list[Object]:
    """Return the pods in the region or the warm pool, or those of the first or last PE outside."""
    named = sorted(pods, key=_name)
    labels = {id(pod): pod["metadata"].get("labels", {}) for pod in named}
    outside = {
        id(pod): int(labels[id(pod)][names.LABEL_PE].rpartition("-")[2])
        for pod in named
        if names.LABEL_PE in labels[id(pod)] and names.LABEL_REGION not in labels[id(pod)]
    }
    if victim == "region":
        return [pod for pod in named if id(pod) not in outside]
    wanted = (min if victim == "source" else max)(outside.values(), default=-1)
    return [pod for pod in named if outside.get(id(pod)) == wanted]


def _name(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def _pid(pod: Object) -> int | None:
    """Return the process of a pod's container on the process node, if it runs."""
    containers = pod["status"].get("containerStatuses", [])
    if not containers or "running" not in containers[0]["state"]:
        return None
    return process_of(pod)
