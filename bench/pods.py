"""The pods of the process node as what they are: processes."""

import psutil

from streamgraft_common.kube.client import Object


def process_of(pod: Object) -> int:
    """Return the process of a pod's container."""
    _, _, pid = pod["status"]["containerStatuses"][0]["containerID"].partition("://")
    return int(pid)


def cpu_seconds(pod: Object) -> float:
    """Return the CPU time of all processes of a pod so far, those that ended included.

    Raises psutil.NoSuchProcess if the pod goes.
    """
    first = psutil.Process(process_of(pod))
    family = (first, *first.children(recursive=True))
    return sum(sum(process.cpu_times()[:4]) for process in family)
