"""How long until a job whose pod fails is at full health again: figure 10 of cloud native Streams
(section 8.1), as far as the control plane goes.

Its PEs are hollow: a replacement is ready as soon as it is bound. So it is what it takes to note a
failure, to make the replacement and to report it; what a driver and its streams take is measured
by `bench-recovery`.
"""

import asyncio
import time

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT, ProcessingElementStatus

FAILURES = 10
"""Of each job, of PEs evenly spread over it; the paper lets each PE fail once."""
STEADY_SECONDS = 15
"""Before the first failure: one of a pod that has just begun waits for a back-off."""
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 60.0
FAILED = {
    "phase": "Failed",
    "conditions": [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")],
}


def chosen(pes: int) -> list[int]:
    """Return the numbers of the PEs that fail: the first, the last, and others between them."""
    count = min(FAILURES, pes)
    return [index * (pes - 1) // max(count - 1, 1) for index in range(count)]


async def measure(client: KubeClient, namespace: str, job: str, pes: int) -> list[float]:
    """Let pods of a healthy job fail, one after the other; return the seconds from each failure
    until the job was at full health again."""
    await asyncio.sleep(STEADY_SECONDS)
    return [await _failure(client, namespace, job, number) for number in chosen(pes)]


async def _failure(client: KubeClient, namespace: str, job: str, number: int) -> float:
    path = PROCESSING_ELEMENT.path(namespace, names.pe_name(job, number))
    before = _status(await client.get(path))
    begin = time.perf_counter()
    await client.patch(f"{POD.path(namespace, before.pod or '')}/status", {"status": FAILED})
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not _runs_anew(_status(await client.get(path)), before.launch_count):
            await asyncio.sleep(POLL_SECONDS)
        while (await client.get(JOB.path(namespace, job)))["status"]["phase"] != "Healthy":
            await asyncio.sleep(POLL_SECONDS)
    return time.perf_counter() - begin


def _status(pe: Object) -> ProcessingElementStatus:
    return ProcessingElementStatus.model_validate(pe.get("status") or {})


def _runs_anew(status: ProcessingElementStatus, launches: int) -> bool:
    return status.launch_count > launches and status.phase == "Running"
