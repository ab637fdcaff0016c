"""Runs seeds on all cores: `python -m tests.simulation --help`. See docs/develop/simulation.md."""

import argparse
import gc
import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

from tests.simulation.simulation import Outcome, simulate

BLOCK = 200
"""Seeds that are given out at a time."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=int, default=2000, help="how many seeds to run (default: %(default)s)")
    add("--first", type=int, default=0, help="the first of them (default: %(default)s)")
    add("--seconds", type=float, help="run seed after seed for so long instead")
    add("--replay", type=int, metavar="SEED", help="run one seed and print its trace")
    return parser


def _replay(seed: int) -> int:
    outcome = simulate(seed, print)
    print(f"seed {seed}: {outcome.problem or 'holds'}")
    return outcome.problem is not None


def _blocks(arguments: argparse.Namespace) -> Iterator[range]:
    """Yield the seeds in blocks: enough to keep all cores busy, few enough to stop in time."""
    last = arguments.first + arguments.seeds
    deadline = time.monotonic() + (arguments.seconds or 0.0)
    for first in itertools.count(arguments.first, BLOCK):
        if arguments.seconds is None:
            if first >= last:
                return
            yield range(first, min(first + BLOCK, last))
        elif time.monotonic() < deadline:
            yield range(first, first + BLOCK)
        else:
            return


def _tell(outcome: Outcome) -> None:
    print(f"seed {outcome.seed}: {outcome.problem}", flush=True)
    print(f"  replay it with: make replay SEED={outcome.seed}", flush=True)


def main() -> int:
    """Run the seeds; 1 if an invariant did not hold in some of them."""
    arguments = _parser().parse_args()
    if arguments.replay is not None:
        return _replay(arguments.replay)
    began, count, simulated, broken = time.monotonic(), 0, 0.0, []
    processes = len(os.sched_getaffinity(0))
    gc.freeze()  # what is imported by now is not garbage in any process
    gc.set_threshold(100_000)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for block in _blocks(arguments):
            for outcome in pool.imap_unordered(simulate, block):
                count, simulated = count + 1, simulated + outcome.seconds
                if outcome.problem:
                    broken.append(outcome.seed)
                    _tell(outcome)
    took = time.monotonic() - began
    print(
        f"{count} seeds, {simulated / 3600:.0f} simulated hours in {took:.0f} s:"
        f" {len(broken) or 'none'} broken"
    )
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
