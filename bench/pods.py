"""The pods of the process node as what they are: processes."""

import psutil

from streamgraft_common.kube.client import Object


def process_of(pod: Object) -> int:
    """Return the process of a pod's container."""
    _, _, pid = pod["status"]["containerStatuses"][0]["containerID"].partition("://")
    return int(pid)


def family_of(pod: Object) -> list[psutil.Process]:
    """Return all processes of a pod, the container's first. Raises psutil.NoSuchProcess."""
    first = psutil.Process(process_of(pod))
    return [first, *first.children(recursive=True)]


def cpu_seconds(pod: Object) -> float:
    """Return the CPU time of all processes of a pod so far, those that ended included.

    Raises psutil.NoSuchProcess if the pod goes.
    """
    return sum(sum(process.cpu_times()[:4]) for process in family_of(pod))
