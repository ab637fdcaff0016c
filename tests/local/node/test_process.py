"""Real processes: start, adopt, wait, end; and the deadline of a pod's end."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from streamgraft_local.node.process import MARKER, Process, ProcessId, kill_marked, marked, marker
from streamgraft_local.node.record import Record
from streamgraft_local.node.states import Terminated
from streamgraft_local.node.termination import Termination


def started(folder: Path, *words: str) -> Process:
    """Start a process that belongs to a folder."""
    variables = {MARKER: marker(folder), "PATH": "/usr/bin:/bin"}
    return Process.start(words, variables, folder, folder / "0.log")


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
async def test_exit_codes(tmp_path: Path, script: str, code: int) -> None:
    process = started(tmp_path, "sh", "-c", script)
    assert await process.wait() == code
    process.close()


async def test_output_goes_to_the_log(tmp_path: Path) -> None:
    process = started(tmp_path, "sh", "-c", "echo out; echo err >&2")
    await process.wait()
    process.close()
    assert (tmp_path / "0.log").read_text() == "out\nerr\n"


async def test_an_adopted_process_ends_with_an_unknown_code(tmp_path: Path) -> None:
    started_by_another = started(tmp_path, "sleep", "1000")
    identity = started_by_another.identity
    adopted = Process.adopt(identity)
    assert adopted is not None
    adopted.signal(signal.SIGTERM)
    assert await adopted.wait() is None
    adopted.close()
    assert Process.adopt(identity) is None
    assert await started_by_another.wait() == 128 + signal.SIGTERM
    started_by_another.close()


def test_another_process_with_the_same_pid_is_not_adopted() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        identity = ProcessId.of(child.pid)
        assert identity is not None
        assert Process.adopt(ProcessId(identity.pid, identity.start_ticks - 1)) is None
        child.kill()


async def test_descendants_in_other_sessions_are_found_and_killed(tmp_path: Path) -> None:
    script = "setsid sleep 1000 & setsid sleep 1000 & echo up"
    process = started(tmp_path, "sh", "-c", script)
    await process.wait()
    process.close()
    async with asyncio.timeout(10):  # a process that is just being replaced shows no environment
        while [psutil.Process(pid).name() for pid in marked(tmp_path)] != ["sleep", "sleep"]:
            await asyncio.sleep(0.01)
    assert len(marked(tmp_path.parent)) == 2
    assert not marked(tmp_path.with_name(tmp_path.name[:-1]))
    await asyncio.to_thread(kill_marked, tmp_path)
    assert not [pid for pid in marked(tmp_path) if ProcessId.of(pid)]


def test_a_missing_program_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        started(tmp_path, "no-such-program")


def test_python_of_the_node_is_found_by_path() -> None:
    assert Path(sys.executable).parent.joinpath("python").exists()


def test_records_survive_the_disk(tmp_path: Path) -> None:
    assert Record.load(tmp_path) is None
    end = Terminated(1, "Error", "a", "b", "process://7", "why")
    for record in (Record(3, "a", ProcessId(7, 8), None, end), Record(4, "a", None, end)):
        record.save(tmp_path)
        assert Record.load(tmp_path) == record


async def test_a_shorter_grace_period_counts_a_longer_one_does_not() -> None:
    termination = Termination()

    async def limited() -> None:
        async with termination.limit(1000):
            await asyncio.Event().wait()

    task = asyncio.create_task(limited())
    termination.request(500)
    await asyncio.sleep(0)
    assert not task.done()
    termination.request(0)
    termination.request(500)
    with pytest.raises(TimeoutError):
        await task
    with pytest.raises(TimeoutError):
        await limited()
    assert termination.requested
    await termination.sleep(1000)
