"""The commands `streamgraft records write` and `streamgraft records read`."""

from typing import Annotated

import typer

from streamgraft.cli import _options as options

records = typer.Typer(no_args_is_help=True, help="Write and read records of topics, as JSON.")
Brokers = Annotated[
    str | None, typer.Option("--bootstrap-servers", help="Default: the embedded environment's.")
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-X", help="NAME=VALUE of Kafka's client (librdkafka): TLS, SASL."),
]


@records.command("write")
def write_records(
    context: typer.Context,
    topic: str,
    file: Annotated[
        typer.FileBinaryRead,
        typer.Argument(help="A JSON object a line; default: standard input."),
    ] = "-",  # type: ignore[assignment]
    key: Annotated[
        str | None, typer.Option(help="The column whose text becomes the record's key.")
    ] = None,
    create: Annotated[
        int | None,
        typer.Option(min=1, help="Create the topic, with so many partitions."),
    ] = None,
    servers: Brokers = None,
    properties: Properties = None,
) -> None:
    """Write each line, a JSON object, as a record."""
    from streamgraft.cli import _records

    client = _records.settings(options.target(context, None), servers, properties or [])
    _records.write(client, topic, file, key, create)


@records.command("read")
def read_records(
    context: typer.Context,
    topic: str,
    count: Annotated[
        int | None, typer.Option(min=1, help="Wait for so many; default: what there is.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on for ever.")] = False,
    servers: Brokers = None,
    properties: Properties = None,
) -> None:
    """Print the committed records from the beginning, one a line."""
    from streamgraft.cli import _records

    client = _records.settings(options.target(context, None), servers, properties or [])
    _records.read(client, topic, count, follow)
