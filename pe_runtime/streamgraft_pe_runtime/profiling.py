"""py-spy beside the PE, from start to end; the JVM records itself (Java Flight Recorder)."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 5.0


@contextlib.contextmanager
def recording(folder: Path | None, pod: str) -> Iterator[None]:
    """Record this process and its Python workers into `<folder>/<pod>.speedscope.json`.

    Without `folder` nothing is recorded. A profiler that can't be started is no reason not to run.
    """
    profiler = _start(folder, pod) if folder else None
    try:
        yield
    finally:
        if profiler:
            profiler.send_signal(signal.SIGINT)  # it writes its file then
            try:
                profiler.wait(_FLUSH_SECONDS)
            except subprocess.TimeoutExpired:
                profiler.kill()
                profiler.wait()


def _start(folder: Path, pod: str) -> "subprocess.Popen[bytes] | None":
    folder.mkdir(parents=True, exist_ok=True)
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    profiler = shutil.which("py-spy", path=beside)
    if profiler is None:
        log.error("there is no py-spy: only Java is profiled")
        return None
    output = folder / f"{pod}.speedscope.json"
    # Not blocking: a sample now and then is wrong, but the process is not stopped for each.
    words = (
        *(profiler, "record", "--subprocesses", "--nonblocking"),
        *("--format", "speedscope", "--output"),
    )
    # A session of its own: a signal to our process group must not end it before us.
    return subprocess.Popen(
        [*words, str(output), "--pid", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
