"""`streamgraft test`: the application's tests, run by pytest with our fixtures."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from streamgraft.cli._output import CommandError


def run(folder: Path, live: bool, keyword: str | None) -> None:
    """Run the tests of a folder; ends with pytest's exit code. Raises CommandError."""
    if find_spec("pytest") is None or find_spec("pyspark") is None:
        raise CommandError(
            "tests need pytest, and Streamgraft with the extra `spark`"
            " (from its checkout: pip install pytest '.[spark]')"
        )
    if not folder.is_dir():
        raise CommandError(f"{folder}: there is no such folder; `streamgraft init` makes one")
    chosen = ["-m", "live or not live"] if live else []
    named = ["-k", keyword] if keyword else []
    command = [sys.executable, "-m", "pytest", *chosen, *named]
    raise typer.Exit(subprocess.run(command, cwd=folder, check=False).returncode)
