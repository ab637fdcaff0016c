"""Whether a process runs, by what the kernel says of it."""

import subprocess
import sys
import time
from pathlib import Path

from streamgraft_local.processes import Process, start_ticks

HALF_ENDED = (
    "import ctypes, threading, time\n"
    "threading.Thread(target=time.sleep, args=(2,)).start()\n"
    "ctypes.CDLL(None).pthread_exit(0)\n"
)
"""The first thread ends, another runs on: as for a moment in each program that is killed."""


def test_a_process_has_ended_once_all_of_its_threads_have() -> None:
    """Until then it has its ports and its locks, and a successor would not get them."""
    started = subprocess.Popen([sys.executable, "-c", HALF_ENDED])
    stat = Path(f"/proc/{started.pid}/stat")
    while start_ticks(stat.read_text())[0] != "Z":
        time.sleep(0.01)
    process = Process.of(started.pid)
    assert process is not None
    assert process.alive()
    while process.alive():
        time.sleep(0.01)
    started.wait()
