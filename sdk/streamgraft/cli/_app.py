"""The command line: global options, commands, and how expected failures are reported."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from streamgraft.cli import _operating as operating
from streamgraft.cli import _options as options
from streamgraft.cli import _output as output
from streamgraft.cli import _record_commands as record_commands
from streamgraft.cli import _savepoint_commands as savepoint_commands
from streamgraft.cli import _suite

CLUSTER_OPTIONS = ("--context", "--kubeconfig")


def cluster_first(arguments: Iterable[str]) -> list[str]:
    """Return the arguments of the command line with those that say which cluster is meant before
    the command: as with kubectl, they may stand anywhere."""
    first: list[str] = []
    others: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            others += [argument, *rest]
        elif argument in CLUSTER_OPTIONS:
            first += [argument, *islice(rest, 1)]
        elif argument.partition("=")[0] in CLUSTER_OPTIONS:
            first.append(argument)
        else:
            others.append(argument)
    return first + others


class ErrorTellingGroup(TyperGroup):
    """Tells an expected failure in one line, with exit code 1; anything else is a bug."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the options of all commands from wherever they stand."""
        return super().parse_args(ctx, cluster_first(args))

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
    output.use("text")
    context.obj = options.Target(kube_context, kubeconfig, namespace)


@app.command()
def up(output_format: options.Output = "text") -> None:
    """Start the embedded environment: a control plane, Kafka, Prometheus and Streamgraft."""
    from streamgraft.cli import _environment

    output.use(output_format)
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
def status(output_format: options.Output = "text") -> None:
    """Show the parts of the embedded environment, whether they run, and their addresses."""
    from streamgraft.cli import _environment

    _environment.status(output_format)


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
def init(
    folder: Annotated[Path, typer.Argument(help="Folder for the project; it may exist.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the application; default: the folder's.")
    ] = None,
) -> None:
    """Make a new application, with tests that pass."""
    from streamgraft.cli import _init

    _init.run(folder, name)


@app.command("test")
def run_tests(
    folder: Annotated[Path, typer.Argument(help="Folder of the project.")] = Path(),
    live: Annotated[
        bool, typer.Option("--live", help="Run tests on the embedded environment, too.")
    ] = False,
    keyword: Annotated[
        str | None, typer.Option("-k", help="Only tests whose names match, as for pytest.")
    ] = None,
) -> None:
    """Run the application's tests: operators on given rows, without a cluster."""
    from streamgraft.cli import _test

    _test.run(folder, live, keyword)


@app.command()
def build(
    application: options.ApplicationFile,
    out: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE.ZIP", help="Default: the application's name.zip."),
    ] = None,
    param: options.Parameters = None,
    include: options.Include = None,
    output_format: options.Output = "text",
) -> None:
    """Check an application and make its bundle, for the values of --param."""
    from streamgraft.cli import _build

    output.use(output_format)
    _build.run(application, out, include or [], param or [])


@app.command()
def submit(
    context: typer.Context,
    application: options.Submittable,
    name: options.JobName = None,
    param: options.Parameters = None,
    width: options.Widths = None,
    include: options.Include = None,
    image: options.Image = None,
    create_topics: options.CreateTopics = False,
    drop_state: options.DropState = None,
    change_stream: options.ChangeStream = None,
    wait: options.Wait = False,
    timeout: options.Timeout = 300.0,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Build if need be, upload the bundle and apply the Job. May be repeated.

    With --wait: exit code 3 if the job waits for source topics in the end.
    """
    from streamgraft.cli import _submit

    output.use(output_format)
    request = _submit.Request(
        application,
        name,
        tuple(param or ()),
        tuple(width or ()),
        tuple(include or ()),
        create_topics,
        tuple(drop_state or ()),
        tuple(change_stream or ()),
        image,
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
    image: options.Image = None,
    drop_state: options.DropState = None,
    change_stream: options.ChangeStream = None,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Show what `submit` would make and restart.

    Exit code 2 if a PE that runs would be restarted, 1 if the operator would refuse it.
    """
    from streamgraft.cli import _plan, _submit

    request = _submit.Request(
        application,
        name,
        tuple(param or ()),
        tuple(width or ()),
        tuple(include or ()),
        drop_state=tuple(drop_state or ()),
        changed_streams=tuple(change_stream or ()),
        image=image,
    )
    _plan.run(options.target(context, namespace), request, output_format)


@app.command()
def cancel(
    context: typer.Context,
    job: options.Job,
    timeout: options.Timeout = 480.0,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Delete a job with its bundle, and wait until it is gone."""
    from streamgraft.cli import _cancel

    output.use(output_format)
    _cancel.run(options.target(context, namespace), job, timeout)


@app.command()
def scale(
    context: typer.Context,
    job: options.Job,
    region: Annotated[str, typer.Argument(help="Name of the region in the application.")],
    width: Annotated[int, typer.Argument(help="Channels wanted.")],
    wait: options.Wait = False,
    timeout: options.Timeout = 300.0,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Set the width of a parallel region."""
    from streamgraft.cli import _scale

    output.use(output_format)
    target = options.target(context, namespace)
    _scale.run(target, job, region, width, timeout if wait else None)


@app.command()
def watch(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(help="Only this job.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the table once and end.")] = False,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Show jobs, processing elements and regions, live; with -o json or yaml once."""
    from streamgraft.cli import _watch

    _watch.run(options.target(context, namespace), job, once, output_format)


@app.command()
def replay(
    load: Annotated[str, typer.Argument(help="CSV, saved range query (JSON), or Prometheus' URL.")],
    true_rate: Annotated[float, typer.Option(min=1e-9, help="Records/s of one busy channel.")],
    shards: Annotated[int, typer.Option(min=1, max=1024, help="The region's max_width.")],
    objective: Annotated[float, typer.Option(help="Longest delay of a record, seconds.")] = 60.0,
    launch: Annotated[float, typer.Option(help="Seconds until a new channel is warm.")] = 30.0,
    pause: Annotated[float, typer.Option(help="Seconds that a moved shard stands still.")] = 1.0,
    loss_per_channel: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the rate that each further channel costs.")
    ] = 0.0,
    largest_shard: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the records in one shard; 0: even.")
    ] = 0.0,
    median_shard: Annotated[
        float, typer.Option(min=0, max=1, help="Share in a usual shard; 1: what is left, evenly.")
    ] = 1.0,
    batch: Annotated[float, typer.Option(min=1e-3, help="Seconds from batch to batch.")] = 1.0,
    batch_cost: Annotated[
        float, typer.Option(min=0, help="Busy seconds of a batch without records.")
    ] = 0.05,
    query: Annotated[str | None, typer.Option(help="PromQL: the region's records/s.")] = None,
    hours: Annotated[float, typer.Option(help="Hours to ask Prometheus for.")] = 24.0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of the autoscaling.")
    ] = None,
    hpa: Annotated[Path | None, typer.Option(help="HPA manifest to try instead.")] = None,
    svg: Annotated[Path | None, typer.Option(help="File for a plot.")] = None,
    output_format: options.Output = "text",
) -> None:
    """Try a scaling policy on a recorded load: width, delays, changes and pod-hours."""
    from streamgraft.cli import _replay
    from streamgraft_autoscaler.replay import RegionModel

    output.use(output_format)
    model = RegionModel(
        true_rate=true_rate,
        shards=shards,
        loss_per_channel=loss_per_channel,
        largest_shard=largest_shard,
        median_shard=median_shard,
        batch_seconds=batch,
        batch_cost_seconds=batch_cost,
        launch_seconds=launch,
        pause_seconds=pause,
    )
    _replay.run(
        _replay.Request(load, query, hours, model, objective, tuple(settings or ()), hpa, svg)
    )


@app.command()
def ports(
    context: typer.Context,
    job: options.Job,
    operator: Annotated[str | None, typer.Argument(help="Only this operator.")] = None,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Show where the inputs of operators are: topic, processing element, address."""
    from streamgraft.cli import _ports

    _ports.run(options.target(context, namespace), job, operator, output_format)


app.add_typer(record_commands.records, name="records")

explain = typer.Typer(no_args_is_help=True, help="Tell why something is as it is.")
app.add_typer(explain, name="explain")


@explain.command("region")
def explain_region(
    context: typer.Context,
    name: options.RegionObject,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Print every input of a region's width, the decision, and what would change it."""
    from streamgraft.cli import _explain

    _explain.run(options.target(context, namespace), name, output_format)


app.add_typer(savepoint_commands.savepoint, name="savepoint")


for command in (
    operating.logs,
    operating.top,
    operating.doctor,
    operating.console,
    _suite.suite,
):
    app.command()(command)
