"""`streamgraft plan`: what `submit` would do, before anything is submitted."""

import asyncio
from dataclasses import replace

import typer
from rich.console import Console

from streamgraft.cli import _output as output
from streamgraft.cli import _plan_view as view
from streamgraft.cli._cluster import connected, not_installed
from streamgraft.cli._options import Target
from streamgraft.cli._plan_compare import Outlook, outlook
from streamgraft.cli._plan_cpu import measured
from streamgraft.cli._plan_state import edited, running
from streamgraft.cli._refusal import check_edit, refused
from streamgraft.cli._submit import Request, built_again, job_name, read_request, requested_spec
from streamgraft_common.bundle import read_bundle
from streamgraft_common.kube import NotFound, Unreachable
from streamgraft_common.kube.config import ConfigError
from streamgraft_common.resources import JobSpec
from streamgraft_operator.graph import GraphError, Submission

EXIT_RESTART = 2
"""Exit code: a PE that runs would be restarted."""
_SERVERS = "brokers of the operator"
"""Stands for the brokers that the operator was started with, as long as it has chosen none yet."""


def run(target: Target, request: Request, form: str) -> None:
    """Show the plan. Exits with EXIT_RESTART if a PE that runs would be restarted.

    Raises CommandError if the operator would refuse it.
    """
    data, adl = read_request(request)
    job = job_name(request, adl)
    spec = requested_spec(request, adl, job)
    submission = Submission(
        namespace=target.namespace or "default",
        job=job,
        uid="",
        spec=JobSpec.model_validate(spec),
        bundle=read_bundle(data),
        bootstrap_servers=_SERVERS,
    )
    try:
        plan, problem = asyncio.run(_planned(target, request, submission, spec))
    except GraphError as error:
        raise refused(error) from error
    if form == "text":
        _show(plan, problem)
    else:
        output.document(view.document(plan, not problem), form)
    check_edit(plan)
    if plan.restarts:
        raise typer.Exit(EXIT_RESTART)


async def _planned(
    target: Target, request: Request, submission: Submission, spec: dict[str, object]
) -> tuple[Outlook, str]:
    """Return the plan, and why it was not compared with a cluster ('' if it was)."""
    try:
        async with connected(target) as cluster:
            here = replace(submission, namespace=cluster.namespace)
            here = replace(
                here, spec=await edited(cluster, submission.job, spec, submission.bundle.adl)
            )
            if data := built_again(request, here.bundle.adl, here.spec.parameters):
                here = replace(here, bundle=read_bundle(data))
            job = await running(cluster, submission.job)
            here = job.placed(here) if job else here
            cpu = await measured(cluster, submission.job)
            return replace(outlook(here, job), cpu=cpu), ""
    except (ConfigError, Unreachable) as error:
        if target.context or target.kubeconfig:  # this cluster was meant, and no other
            raise
        return outlook(submission, None), str(error)
    except NotFound as error:
        if not not_installed(error):
            raise
        return outlook(submission, None), "the cluster doesn't know Streamgraft's resources"


def _show(plan: Outlook, problem: str) -> None:
    Console().print(view.pes(plan))
    output.say("")
    for note in view.notes(plan):
        output.say(note)
    if problem:
        output.say(f"Not compared with a cluster: {problem}")
