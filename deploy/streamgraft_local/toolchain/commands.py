"""Runs a tool and turns its failure into an error that a user can act on."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from streamgraft_local.errors import ToolError


def run(purpose: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the output (both streams) of a command.

    Raises ToolError with the end of its output if it fails or does not exist.
    """
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise ToolError(f"{purpose}: {error}") from error
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-20:])
        raise ToolError(f"{purpose} failed ({done.returncode}): {' '.join(command[:3])} …\n{last}")
    return done.stdout
