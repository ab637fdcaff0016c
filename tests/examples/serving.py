"""Services that examples ask, each as a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(module: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a module that prints its URL first; yield its process, which ends then, and the URL."""
    command = [sys.executable, "-m", module, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()
