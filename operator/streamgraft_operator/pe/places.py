"""PEs and pods of an earlier graph, which had other places.

A stage keeps its name when an edit gives it to another PE. The shards of a stage have one writer,
so the PE that has it now waits for the pods of those that had it before.
"""

from collections.abc import Iterable, Mapping

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_operator.pe.pods import pod_view


def displaced(labels: Mapping[str, str], stages: Mapping[str, str]) -> bool:
    """Return whether something with these labels has a stage that another PE has now.

    `stages`: PE → name of its stage, as planned.
    """
    stage = labels.get(names.LABEL_STAGE_NAME)
    return stage in stages.values() and stages.get(labels.get(names.LABEL_PE, "")) != stage


def displaced_pods(pods: Iterable[Object], stages: Mapping[str, str]) -> bool:
    """Return whether one of the pods is displaced and may run."""
    return any(displaced(pod["metadata"]["labels"], stages) and pod_view(pod).alive for pod in pods)
