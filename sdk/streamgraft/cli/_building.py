"""Builds, which start a driver of Spark: with progress."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from streamgraft._builder import BuiltBundle, build_bundle
from streamgraft.cli._embedded import offer_tools
from streamgraft.cli._progress import display
from streamgraft_local.progress import reported


def built(application: Path, include: Sequence[Path], parameters: Mapping[str, str]) -> BuiltBundle:
    """Return the bundle of an application for these values of its parameters."""
    with display() as steps:
        offer_tools(steps.report)
        with reported(steps.report, f"build {application.name}", "Spark plans it; some seconds"):
            return build_bundle(application, include, parameters)
