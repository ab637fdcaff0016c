"""The command line: global options, commands, and how expected failures are told."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from streamgraft.cli import _options as options
from streamgraft.cli import _output as output


class ErrorTellingGroup(TyperGroup):
    """Tells an expected failure in one line, with exit code 1; anything else is a bug."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from streamgraft.cli._failures import expected_failures

        try:
            return super().invoke(ctx)
        except expected_failures() as error:
            output.fail(error)


app = typer.Typer(
    name="streamgraft",
    cls=ErrorTellingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Streaming applications on Kubernetes that scale themselves.",
)


@app.callback()
def connect(
    context: typer.Context,
    kube_context: Annotated[
        str | None, typer.Option("--context", help="Context of the kubeconfig to use.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig file to use.")] = None,
    namespace: options.Namespace = None,
) -> None:
    """Remember which cluster is meant."""
    context.obj = options.Target(kube_context, kubeconfig, namespace)


@app.command()
def up() -> None:
    """Start the embedded environment: a control plane, Kafka, Prometheus and Streamgraft."""
    from streamgraft.cli import _environment

    _environment.up()


@app.command()
def down(
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete its data too: jobs, topics, checkpoints.")
    ] = False,
) -> None:
    """Stop the embedded environment; nothing is left running."""
    from streamgraft.cli import _environment

    _environment.down(delete)


@app.command()
def status() -> None:
    """Show the parts of the embedded environment and whether they run."""
    from streamgraft.cli import _environment

    _environment.status()


@app.command()
def kubeconfig(
    merge: Annotated[
        bool, typer.Option("--merge", help="Add it to ~/.kube/config as a context.")
    ] = False,
) -> None:
    """Print the path of the embedded environment's kubeconfig."""
    from streamgraft.cli import _kubeconfig

    _kubeconfig.run(merge)


@app.command()
def build(
    application: options.ApplicationFile,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: the application's name.zip.")
    ] = None,
    include: options.Include = None,
) -> None:
    """Check an application and make its bundle."""
    from streamgraft.cli import _build

    _build.run(application, out, include or [])


@app.command()
def submit(
    context: typer.Context,
    application: options.Submittable,
    name: options.JobName = None,
    param: options.Parameters = None,
    width: options.Widths = None,
    include: options.Include = None,
    wait: options.Wait = False,
    timeout: options.Timeout = 300.0,
    namespace: options.Namespace = None,
) -> None:
    """Build if need be, upload the bundle and apply the Job. May be repeated."""
    from streamgraft.cli import _submit

    request = _submit.Request(
        application, name, tuple(param or ()), tuple(width or ()), tuple(include or ())
    )
    _submit.run(options.target(context, namespace), request, timeout if wait else None)


@app.command()
def plan(
    context: typer.Context,
    application: options.Submittable,
    name: options.JobName = None,
    param: options.Parameters = None,
    width: options.Widths = None,
    include: options.Include = None,
    output_format: Annotated[
        Literal["text", "json"], typer.Option("-o", "--output", help="How to print it.")
    ] = "text",
    namespace: options.Namespace = None,
) -> None:
    """Show what `submit` would make and restart; exit code 2 if a PE that runs restarts."""
    from streamgraft.cli import _plan, _submit

    request = _submit.Request(
        application, name, tuple(param or ()), tuple(width or ()), tuple(include or ())
    )
    _plan.run(options.target(context, namespace), request, output_format == "json")


@app.command()
def cancel(
    context: typer.Context,
    job: options.Job,
    timeout: options.Timeout = 120.0,
    namespace: options.Namespace = None,
) -> None:
    """Delete a job with its bundle, and wait until it is gone."""
    from streamgraft.cli import _cancel

    _cancel.run(options.target(context, namespace), job, timeout)


@app.command()
def scale(
    context: typer.Context,
    job: options.Job,
    region: Annotated[str, typer.Argument(help="Name of the region in the application.")],
    width: Annotated[int, typer.Argument(help="Channels wanted.")],
    wait: options.Wait = False,
    timeout: options.Timeout = 300.0,
    namespace: options.Namespace = None,
) -> None:
    """Set the width of a parallel region."""
    from streamgraft.cli import _scale

    target = options.target(context, namespace)
    _scale.run(target, job, region, width, timeout if wait else None)


@app.command()
def watch(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(help="Only this job.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the table once and end.")] = False,
    namespace: options.Namespace = None,
) -> None:
    """Show jobs, processing elements and regions, live."""
    from streamgraft.cli import _watch

    _watch.run(options.target(context, namespace), job, once)


@app.command()
def logs(
    context: typer.Context,
    job: options.Job,
    pe: Annotated[int | None, typer.Argument(help="Id of one processing element.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with new lines.")] = False,
    tail: Annotated[int, typer.Option(help="Lines of each pod to begin with.")] = 100,
    namespace: options.Namespace = None,
) -> None:
    """Print the logs of a job's pods."""
    from streamgraft.cli import _logs

    _logs.run(options.target(context, namespace), job, pe, follow, tail)
