"""`make torture`: width changes, edits and kills on real parts; `--help` says more."""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tests.e2e.torture.job import NotServing
from tests.e2e.torture.run import KINDS, torture
from tests.e2e.torture.schedule import tally
from tests.e2e.torture.telling import narrator

from bench.cluster import NAMESPACE, running_cluster

ENOUGH_CHANGES = 50
"""Kills in so many changes hit some batches; the sink without transactions must show it. In real
time at least once each does."""


async def _run(seed: int, changes: int, kind: str) -> int:
    say = narrator()
    with tempfile.TemporaryDirectory(prefix="streamgraft-torture-") as folder:
        async with running_cluster(Path(folder)) as cluster:
            try:
                verdict = await torture(cluster, NAMESPACE, seed, changes, say, kind)
            except NotServing as error:
                say(str(error))
                return _again(seed, changes, kind)
    enough = changes >= ENOUGH_CHANGES or kind == "real-time-loose"
    if enough and not verdict.loose_twice:
        verdict.problems.append("the sink that asks for at least once has no repeats: a blind run")
    for problem in verdict.problems:
        say(problem)
    done = {"width changes": changes, **tally(verdict.struck), "edits": verdict.edits}
    say(
        f"{', '.join(f'{count} {name}' for name, count in done.items())}:"
        f" {verdict.lost} lost, {verdict.twice} double, {len(verdict.problems) or 'no'} problems;"
        f" {verdict.loose_twice} results written twice where at least once was asked for"
    )
    return _again(seed, changes, kind) if verdict.problems else 0


def _again(seed: int, changes: int, kind: str) -> int:
    command = f"make torture CHANGES={changes} SEED={seed} KIND={kind}"
    print(f"the same once more: {command}", flush=True)
    return 1


def main() -> int:
    """Run; 1 if something is wrong at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.torture", description=__doc__)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0], help="what the region runs")
    parsed = parser.parse_args()
    return asyncio.run(_run(parsed.seed, parsed.changes, parsed.kind))


if __name__ == "__main__":
    sys.exit(main())
