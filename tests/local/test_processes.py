"""Whether a process runs, by what the kernel says of it."""

import subprocess
import sys
import time

from streamgraft_local.processes import Process

HALF_ENDED = (
    "import ctypes, threading, time\n"
    "threading.Thread(target=time.sleep, args=(2,)).start()\n"
    "ctypes.CDLL(None).pthread_exit(0)\n"
)
"""The first thread ends, another runs on: as for a moment in each program that is killed."""


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_process_has_ended_once_all_of_its_threads_have() -> None:
    """Until then it has its ports and its locks, and a successor would not get them."""
    started = subprocess.Popen([sys.executable, "-c", HALF_ENDED])
    while _state(started.pid) != "Z":
        time.sleep(0.01)
    process = Process.of(started.pid)
    assert process is not None
    assert process.alive()
    while process.alive():
        time.sleep(0.01)
    started.wait()
