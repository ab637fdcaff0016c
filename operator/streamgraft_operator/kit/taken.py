"""Names that objects of jobs should have, and that something else has."""

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_operator.kit.objects import is_owned_by


class NameTaken(Exception):
    """Something else has the name of an object that is needed."""

    reason = "NameTaken"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(
            f"{kind} {name} belongs to something else: delete it, or make it anew under another"
            " name; it goes on by itself then"
        )


def is_of_job(item: Object, job: str, uid: str) -> bool:
    """Return whether an object is a job's: its own, or left over by one that had its name."""
    labels = item["metadata"].get("labels", {})
    return labels.get(names.LABEL_JOB) == job or is_owned_by(item, uid)


def check_name(kind: str, found: Object | None, job: str, uid: str) -> None:
    """Raise NameTaken if there is an object that is not a job's under the name of one of its."""
    if found is not None and not is_of_job(found, job, uid):
        raise NameTaken(kind, found["metadata"]["name"])
