"""Which savepoints are cuts of consistent regions, or rollbacks: those that a region's controller
made."""

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_operator.kit.objects import is_owned_by, saved_job
from streamgraft_operator.kit.parsed import savepoint_spec


def cut_number(item: Object) -> int | None:
    """Return the number of the cut that a savepoint is, None if it is none of a region's own."""
    region, name = savepoint_spec(item).consistent_region, item["metadata"]["name"]
    if region is None:
        return None
    return names.cut_number(name, names.region_name(saved_job(item)[1], region))


def is_foreign(item: Object, job_uid: str) -> bool:
    """Return whether a savepoint says that it is a cut, or a rollback, and no region made it.

    `job_uid`: that of the job that it is of. Sinks would commit what is in it; the region, which
    knows nothing of that, would go back to before it and have them do so again.
    """
    spec = savepoint_spec(item)
    if spec.consistent_region is None:
        return spec.rolls_back_to is not None
    region = names.region_name(spec.job, spec.consistent_region)
    number = names.cut_number if spec.rolls_back_to is None else names.rollback_number
    return number(item["metadata"]["name"], region) is None or not is_owned_by(item, job_uid)
