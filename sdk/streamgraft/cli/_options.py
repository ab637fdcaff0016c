"""Options that several commands share, and the cluster that they select."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from streamgraft_common import names


def _checked(name: str | None) -> str | None:
    """Refuse what is no name: without one a path is that of all objects."""
    if name is not None and re.fullmatch(names.OBJECT_NAME, name) is None:
        raise typer.BadParameter(f"{name!r} is no name of an object")
    return name


Namespace: TypeAlias = Annotated[
    str | None, typer.Option("-n", "--namespace", help="Namespace; default: the context's.")
]
Wait: TypeAlias = Annotated[bool, typer.Option("--wait", help="Wait until it is done.")]
Timeout: TypeAlias = Annotated[float, typer.Option(min=1, help="Seconds to wait.")]
Job: TypeAlias = Annotated[str, typer.Argument(help="Name of the job.", callback=_checked)]
RegionObject: TypeAlias = Annotated[
    str, typer.Argument(help="Name of the ParallelRegion: JOB-REGION.", callback=_checked)
]
Savepoint: TypeAlias = Annotated[
    str, typer.Argument(help="Name of the savepoint.", callback=_checked)
]
JobName: TypeAlias = Annotated[
    str | None, typer.Option("--name", help="Name of the job; default: the application's.")
]
Parameters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="KEY=VALUE",
        help="Submission-time value; a submit that does not name it sets the default.",
    ),
]
Widths: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--width", metavar="REGION=N", help="Width that a region starts with."),
]
Image: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="IMAGE", help="Image of the job's pods; default: the operator's."),
]
ApplicationFile: TypeAlias = Annotated[Path, typer.Argument(metavar="APP.PY")]
Submittable: TypeAlias = Annotated[Path, typer.Argument(metavar="APP.PY|BUNDLE.ZIP")]
CreateTopics: TypeAlias = Annotated[
    bool, typer.Option("--create-topics", help="Create source topics that do not exist.")
]
DropState: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--drop-state", metavar="OPERATOR", help="Operator whose state may be dropped."),
]
ChangeStream: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--change-stream", metavar="STREAM", help="Stream whose columns may change in place."
    ),
]
Output: TypeAlias = Annotated[
    Literal["text", "json", "yaml"],
    typer.Option("-o", "--output", help="How to print it; json and yaml for programs."),
]
Include: TypeAlias = Annotated[
    list[Path] | None, typer.Option(metavar="PATH", help="Further file or folder for the bundle.")
]


@dataclass(frozen=True)
class Target:
    """Which cluster and namespace are meant; None: not said."""

    context: str | None = None
    kubeconfig: Path | None = None
    namespace: str | None = None

    @property
    def may_be_embedded(self) -> bool:
        """Whether no cluster is named, so that the embedded environment is meant if it is up."""
        return self.kubeconfig is None and self.context is None


def target(context: typer.Context, namespace: str | None) -> Target:
    """Return the target of a command: its own namespace option beats the global one."""
    chosen: Target = context.find_root().obj
    return replace(chosen, namespace=namespace or chosen.namespace)
