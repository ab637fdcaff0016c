"""What the operator would refuse, in its own words, before anything is uploaded."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from streamgraft.cli._cluster import Cluster
from streamgraft.cli._output import CommandError
from streamgraft.cli._plan_compare import Outlook, outlook
from streamgraft.cli._plan_state import RunningJob, edited, running, spec_of
from streamgraft.cli._resubmitted import others_operators
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import Bundle
from streamgraft_common.edits import EditRefused, allow
from streamgraft_common.kube import ApiError, Forbidden
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_operator.graph import GraphError, Submission


def refused(error: GraphError | EditRefused) -> CommandError:
    """Return what is told of a submission that the operator would refuse."""
    return CommandError(f"the operator would refuse this: {error}")


def check_stays(job: Object) -> None:
    """Raise CommandError for a Job that is being deleted."""
    metadata = job["metadata"]
    if "deletionTimestamp" in metadata:
        raise CommandError(
            f"job {metadata['name']} is being deleted, and what is submitted now would go with it:"
            f" `streamgraft cancel {metadata['name']}` waits until it is gone; then try again"
        )


async def refuse_deleted(cluster: Cluster, name: str) -> None:
    """Raise CommandError if a job is being deleted. Of one that we may not see, the answer to what
    is applied tells."""
    try:
        job = await cluster.client.find(JOB.path(cluster.namespace, name))
    except Forbidden:
        return
    if job is not None:
        check_stays(job)


def check_edit(plan: Outlook) -> None:
    """Raise CommandError if state or positions of a job that runs would be lost."""
    submission = plan.submission
    try:
        allow(plan.outcomes, submission.spec.drop_state, submission.spec.changed_streams)
    except EditRefused as error:
        why = refused(error)
        if not (others := others_operators(plan.operators, submission.bundle.adl)):
            raise why from error
        raise CommandError(
            f"job {submission.job} runs another application (it has the operators"
            f" {', '.join(others)}): give this one a name of its own with --name; {why}"
        ) from error


async def parameters_of(
    cluster: Cluster, name: str, spec: Mapping[str, Any], adl: Adl
) -> Mapping[str, str]:
    """Return the values with which a job would run: what is asked for, and what others have set in
    a Job that we may see."""
    asked: Mapping[str, str] = spec.get("parameters", {})
    try:
        if await cluster.client.find(JOB.path(cluster.namespace, name)) is None:
            return asked
        return (await edited(cluster, name, dict(spec), adl)).parameters
    except (ApiError, ValidationError) as error:
        if isinstance(error, ApiError) and error.passes:
            raise
        return asked  # what is wrong is told by what follows


async def check_submission(cluster: Cluster, tried: Object, bundle: Bundle) -> RunningJob | None:
    """Return the job as it was, as far as there is one and we may see it; `tried`: as the API
    server would take it, without storing it.

    Raises CommandError if the operator would refuse this: for a new job as well, of which nobody
    would hear it after the submission.
    """
    name = tried["metadata"]["name"]
    try:
        job, spec = await running(cluster, name), spec_of(tried, bundle.adl)
    except (Forbidden, ValidationError):
        return None
    submission = Submission(
        namespace=cluster.namespace,
        job=name,
        uid="",
        spec=spec,
        bundle=bundle,
        bootstrap_servers="",
    )
    try:
        check_edit(outlook(job.placed(submission) if job else submission, job))
    except GraphError as error:
        raise refused(error) from error
    return job
