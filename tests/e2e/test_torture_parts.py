"""The torture run's own judgement: it must find what is wrong, or its verdict says nothing."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from tests.e2e.torture.run import Torture
from tests.e2e.torture.schedule import (
    BLOCK,
    MEANS,
    NAMES,
    OF_PROGRAMS,
    PLACES,
    VICTIMS,
    Kill,
    Means,
    Step,
    Victim,
    steps,
    tally,
)
from tests.e2e.torture.verification import Input, Result, complete, verify
from tests.e2e.torture.victims import Killer, full_disk, strike

from streamgraft_local.processes import Process

INPUTS = [Input("a", 0), Input("b", 1), Input("a", 2), Input("a", 3), Input("b", 4)]
RESULTS = [Result("a", 1, 0), Result("b", 1, 1), Result("a", 3, 5), Result("b", 2, 5)]


def test_good_run() -> None:
    verdict = verify(5, INPUTS, RESULTS)
    assert (verdict.problems, verdict.lost, verdict.twice, verdict.loose_twice) == ([], 0, 0, 0)
    assert complete(5, INPUTS, RESULTS)


def test_what_is_lost_and_what_is_double_is_counted() -> None:
    assert verify(5, INPUTS, RESULTS[:-1]).lost == 1
    for too_much in (RESULTS[-1], Result("b", 3, 6)):
        assert verify(5, INPUTS, [*RESULTS, too_much]).twice == 1


def test_what_is_written_twice_is_allowed_where_at_least_once_was_asked_for() -> None:
    verdict = verify(5, INPUTS, RESULTS, [*RESULTS, RESULTS[-1]])
    assert (verdict.problems, verdict.loose_twice) == ([], 1)


@pytest.mark.parametrize(
    ("sent", "results"),
    [
        (6, RESULTS),
        (5, RESULTS[:-1]),
        (5, [*RESULTS, Result("a", 2, 2)]),
        (5, [*RESULTS, RESULTS[-1]]),
        (5, [*RESULTS, Result("b", 3, 6)]),
        (5, [Result("a", 1, 2), *RESULTS[1:]]),
        (5, [*RESULTS, Result("c", 1, 1)]),
    ],
    ids=[
        "lost",
        "not counted",
        "step back",
        "written twice",
        "counted twice",
        "another order",
        "from nowhere",
    ],
)
def test_what_is_wrong_is_found(sent: int, results: list[Result]) -> None:
    assert verify(sent, INPUTS, results).problems


def test_incomplete_as_long_as_something_is_missing() -> None:
    assert not complete(6, INPUTS, RESULTS)
    assert not complete(5, INPUTS, RESULTS[:-1])


def test_steps_are_those_of_the_seed() -> None:
    run = list(steps(7, 40, 3))
    assert run == list(steps(7, 40, 3))
    assert run != list(steps(8, 40, 3))
    widths = [1, *(step.width for step in run)]
    assert all(old != new for old, new in pairwise(widths))
    assert set(widths) == {1, 2, 3}
    assert not run[-1].hurried


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_is_killed_once_in_a_block(seed: int) -> None:
    run = list(steps(seed, 2 * BLOCK, 3))
    for first in (0, BLOCK):
        block = run[first : first + BLOCK]
        killed = Counter(step.kill.victim for step in block if step.kill)
        assert killed == dict.fromkeys(VICTIMS, 1)
        assert sum(step.edit for step in block) == 1


def test_every_means_meets_every_place() -> None:
    kills = [step.kill for step in steps(7, 300, 3) if step.kill]
    assert {(kill.victim, kill.means) for kill in kills} == {
        *product(PLACES, MEANS),
        *product({*VICTIMS} - {*PLACES}, OF_PROGRAMS),
    }
    for kill in kills:
        assert (kill.seconds > 0) == (kill.means in ("freeze", "disk"))


def test_what_happened_is_told_by_its_kind() -> None:
    """By a freeze or a full disk nothing dies."""
    assert {*chain(*NAMES.values())} == {*get_args(Means)}
    struck: dict[Means, int] = {"kill": 2, "memory": 1, "freeze": 4, "disk": 1}
    assert tally(struck) == {"kills": 3, "freezes": 4, "full disks": 1}
    assert tally({}) == {}


@pytest.mark.parametrize(("found", "count"), [("pod p", 1), (None, 0)])
async def test_what_met_no_pod_is_not_counted(found: str | None, count: int) -> None:
    async def scale(width: int) -> None:
        pass

    async def struck(kill: Kill) -> str | None:
        return found

    job: Any = SimpleNamespace(scale=scale)
    load: Any = SimpleNamespace(rate=0.0)
    killer: Any = SimpleNamespace(kill=struck)
    said: list[str] = []
    run = Torture(job, "joint", said.append)
    freeze = Kill("source", "freeze", 0.0, 5.0, 0.0, False)
    await run._take("1/1", Step(2, freeze, hurried=True), load, killer)
    assert +run.struck == ({"freeze": count} if count else {})
    assert said[0].endswith(f"it was {found or 'no pod'}")


@pytest.mark.parametrize("place", PLACES)
async def test_a_pod_of_each_place_is_struck_amid_what_it_writes(place: Victim) -> None:
    waited: list[str] = []
    amid = {other: partial(waited.append, other) for other in PLACES}
    client: Any = SimpleNamespace(get=_no_items)
    job: Any = SimpleNamespace(cluster=None, client=client, namespace="n", name="j")
    killer = Killer(job, amid=amid)
    pod = {"metadata": {"name": "p"}, "status": {}}
    kill = Kill(place, "kill", 0.0, 0.0, 0.0, False)
    assert await killer._strike_family(pod, [pod], kill) == pod
    assert waited == [place]


async def _no_items(*_: object, **__: object) -> dict[str, list[object]]:
    return {"items": []}


def test_a_process_is_frozen_and_wakes_up() -> None:
    asyncio.run(_frozen(subprocess.Popen(["sleep", "60"])))


async def _frozen(process: "subprocess.Popen[bytes]") -> None:
    found = Process.of(process.pid)
    assert found
    freeze = Kill("source", "freeze", 0.0, 0.2, 0.0, False)
    task = asyncio.create_task(strike([found], freeze))
    await asyncio.sleep(0.1)
    assert _state(process.pid) == "T"
    await task
    assert _state(process.pid) != "T"
    await strike([found], replace(freeze, means="kill"))
    assert await asyncio.to_thread(process.wait, 5) == -signal.SIGKILL


def test_a_full_disk_accepts_nothing_until_it_is_over(tmp_path: Path) -> None:
    script = (
        "import sys\nfor line in sys.stdin:\n"
        " try:\n  with open(line.strip(), 'w') as file: file.write('x')\n"
        "  print('ok', flush=True)\n"
        " except OSError as error:\n  print(error.strerror, flush=True)\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        found = Process.of(process.pid)
        assert found

        def written() -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{tmp_path / 'file'}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert written() == "ok"
        with full_disk([found]):
            assert written() == "File too large"
        assert written() == "ok"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
