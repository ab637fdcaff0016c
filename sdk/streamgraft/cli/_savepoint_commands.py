"""The commands `streamgraft savepoint create`, `list`, `restore` and `delete`."""

from pathlib import Path
from typing import Annotated

import typer

from streamgraft.cli import _options as options
from streamgraft.cli import _output as output

savepoint = typer.Typer(
    no_args_is_help=True, help="Keep the state of jobs, and start jobs from it."
)


@savepoint.command("create")
def savepoint_create(
    context: typer.Context,
    job: options.Job,
    name: Annotated[str | None, typer.Option(help="Default: the job's and the time.")] = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds; then the job just goes on.")] = 300,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Copy the state of a job; its sources stand still meanwhile, for seconds."""
    from streamgraft.cli import _savepoint

    output.use(output_format)
    _savepoint.create(options.target(context, namespace), job, name, timeout)


@savepoint.command("list")
def savepoint_list(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(help="Only those of this job.")] = None,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Show savepoints."""
    from streamgraft.cli import _savepoint

    _savepoint.show(options.target(context, namespace), job, output_format)


@savepoint.command("restore")
def savepoint_restore(
    context: typer.Context,
    name: options.Savepoint,
    application: Annotated[
        Path | None,
        typer.Argument(metavar="[APP.PY|BUNDLE.ZIP]", help="Default: what the job runs."),
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="Job to cancel and start anew; default: the savepoint's.")
    ] = None,
    fork: Annotated[
        str | None, typer.Option("--as", help="Start a further job of this name instead.")
    ] = None,
    param: options.Parameters = None,
    width: options.Widths = None,
    include: options.Include = None,
    allow_dropped_state: Annotated[
        bool, typer.Option(help="Leave behind state that no operator takes.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Don't ask; needed without a terminal.")
    ] = False,
    wait: options.Wait = False,
    timeout: options.Timeout = 300.0,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Start a job from a savepoint: instead of one, or as a fork."""
    from streamgraft.cli import _restore

    output.use(output_format)
    request = _restore.Restore(
        savepoint=name,
        application=application,
        job=job,
        fork=fork,
        parameters=tuple(param or ()),
        widths=tuple(width or ()),
        include=tuple(include or ()),
        allow_dropped_state=allow_dropped_state,
        yes=yes,
    )
    _restore.run(options.target(context, namespace), request, timeout, wait=wait)


@savepoint.command("delete")
def savepoint_delete(
    context: typer.Context,
    name: options.Savepoint,
    timeout: options.Timeout = 60.0,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Delete a savepoint with its files."""
    from streamgraft.cli import _savepoint

    output.use(output_format)
    _savepoint.delete(options.target(context, namespace), name, timeout)
