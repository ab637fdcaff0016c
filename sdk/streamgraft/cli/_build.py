"""`streamgraft build`."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from streamgraft._builder import MAX_CONFIG_MAP_BYTES, BuiltBundle
from streamgraft.cli import _output as output
from streamgraft.cli._building import built
from streamgraft.cli._submit import pairs
from streamgraft.cli._tables import table
from streamgraft_common.adl import Adl


def run(
    application: Path, out: Path | None, include: Sequence[Path], parameters: Sequence[str]
) -> None:
    """Build, write the bundle and say what is in it. `parameters`: NAME=VALUE each."""
    bundle = built(application, include, dict(pairs("--param", parameters)))
    target = out or Path(f"{bundle.adl.name}.zip")
    target.write_bytes(bundle.data)
    for notice in bundle.notices:
        output.warn(notice)
    if not output.is_document():
        show(bundle)
    output.result(
        {
            "bundle": str(target),
            "bytes": len(bundle.data),
            "files": bundle.files,
            "application": bundle.adl.model_dump(mode="json", by_alias=True),
        }
    )
    output.say(f"{target}: {len(bundle.data):,} bytes, {len(bundle.files)} file(s)")
    if len(bundle.data) > MAX_CONFIG_MAP_BYTES:
        output.warn(f"above {MAX_CONFIG_MAP_BYTES:,} bytes: `submit` can't upload it")


def show(bundle: BuiltBundle) -> None:
    """Print the application as a table of operators and one of regions."""
    console = Console()
    console.print(operators(bundle.adl))
    if bundle.adl.regions:
        console.print(regions(bundle.adl))


def operators(adl: Adl) -> Table:
    """Return the table of operators, upstream first."""
    headings = ("Operator", "Kind", "Reads", "Makes", "Region", "State")
    rows = table(f"Application {adl.name}", *headings)
    for item in adl.operators:
        rows.add_row(
            item.name,
            item.kind,
            ", ".join(item.inputs) or (item.kafka.topic if item.kafka else ""),
            ", ".join(item.outputs) or (item.kafka.topic if item.kafka else ""),
            item.region or "",
            "stateful" if item.stateful else "",
        )
    return rows


def regions(adl: Adl) -> Table:
    """Return the table of regions."""
    rows = table("Parallel regions", "Region", "Key", "Width", "Max", "Autoscaling")
    for item in adl.regions:
        scaling = item.autoscaling
        limits = (
            f"{scaling.metric}, {scaling.min_width} to {scaling.max_width or item.max_width}"
            if scaling
            else ""
        )
        rows.add_row(item.name, ", ".join(item.key), str(item.width), str(item.max_width), limits)
    return rows
