"""What the command line writes: plain lines to stdout, errors to stderr.

A command that is asked for JSON or YAML prints one document to stdout, and its lines to stderr.
"""

import json
from contextvars import ContextVar
from typing import Any, NoReturn

import typer

_form = ContextVar("form", default="text")


class CommandError(Exception):
    """An expected failure of a command; the text says what to do."""

    def __init__(self, text: str, exit_code: int = 1) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def use(form: str) -> None:
    """Begin a command whose result is wanted in this form: text, json or yaml."""
    _form.set(form)


def is_document() -> bool:
    """Whether the command was asked for one document: what is for people goes to stderr then."""
    return _form.get() != "text"


def say(text: str) -> None:
    """Print a line of progress or result."""
    typer.echo(text, err=is_document())


def note(text: str) -> None:
    """Print a line of progress of a command whose stdout is data, line by line."""
    typer.echo(text, err=True)


class Told:
    """Prints what has changed: for commands that wait and look again and again."""

    def __init__(self) -> None:
        self.last = ""

    def say(self, text: str) -> None:
        """Print a line, unless it is the last one again."""
        if text != self.last:
            self.last = text
            say(text)


def document(value: Any, form: str) -> None:
    """Print a JSON value for programs; `form`: json or yaml."""
    if form == "json":
        typer.echo(json.dumps(value, indent=2))
        return
    import yaml

    typer.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip())


def result(value: dict[str, Any]) -> None:
    """Print what came of the command, if it was asked for a document; the lines tell it, too.

    A Kubernetes object is printed without `managedFields`, as kubectl does.
    """
    if is_document():
        metadata = value.get("metadata")
        shown = metadata and {k: v for k, v in metadata.items() if k != "managedFields"}
        document({**value, "metadata": shown} if shown else value, _form.get())


def warn(text: str) -> None:
    """Print something that is probably not meant."""
    typer.secho(f"warning: {text}", fg="yellow", err=True)


def fail(error: BaseException) -> NoReturn:
    """Tell an expected failure and end with its exit code."""
    for single in getattr(error, "errors", (error,)):
        typer.secho(f"error: {str(single) or type(single).__name__}", fg="red", err=True)
    raise typer.Exit(getattr(error, "exit_code", 1))
