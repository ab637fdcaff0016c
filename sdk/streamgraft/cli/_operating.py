"""Commands for those who operate jobs; `_app` registers them."""

from typing import Annotated

import typer

from streamgraft.cli import _options as options


def top(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(help="Only this job.")] = None,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Show how busy processing elements are and how many records wait, the busiest first."""
    from streamgraft.cli import _top

    _top.run(options.target(context, namespace), job, output_format)


def doctor(
    context: typer.Context,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Look for what is missing in a cluster, and say how to mend it; exit code 1 if something is.

    Kubernetes and its metrics APIs, the resource definitions, the operator, your rights, Kafka,
    Prometheus, and the HPAs of regions.
    """
    from streamgraft.cli import _doctor

    _doctor.run(options.target(context, namespace), output_format)


def logs(
    context: typer.Context,
    job: options.Job,
    pe: Annotated[
        str | None,
        typer.Argument(help="One processing element: its id, or its name as in `watch`."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with new lines, and with new pods.")
    ] = False,
    tail: Annotated[int, typer.Option(help="Lines of each pod to begin with.")] = 100,
    namespace: options.Namespace = None,
) -> None:
    """Print the logs of a job's pods."""
    from streamgraft.cli import _logs

    _logs.run(options.target(context, namespace), job, pe, follow, tail)


def console(
    context: typer.Context,
    adapter: Annotated[
        str | None, typer.Option(help="URL of the metrics adapter; default: the embedded one's.")
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="Service account to sign in as, where the kubeconfig has no token.",
        ),
    ] = None,
) -> None:
    """Print a link to the console that signs a browser in, once, within five minutes."""
    from streamgraft.cli import _console

    _console.run(options.target(context, None), adapter, account)
