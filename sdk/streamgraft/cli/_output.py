"""What the command line writes: plain lines to stdout, errors to stderr."""

from typing import NoReturn

import typer


class CommandError(Exception):
    """An expected failure of a command; the text says what to do."""


def say(text: str) -> None:
    """Print a line of progress or result."""
    typer.echo(text)


def warn(text: str) -> None:
    """Print something that is probably not meant."""
    typer.secho(f"warning: {text}", fg="yellow", err=True)


def fail(error: BaseException) -> NoReturn:
    """Tell an expected failure and end with exit code 1."""
    for single in getattr(error, "errors", (error,)):
        typer.secho(f"error: {str(single) or type(single).__name__}", fg="red", err=True)
    raise typer.Exit(1)
