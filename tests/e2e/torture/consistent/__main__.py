"""`make torture-consistent`: kills amid cuts, rollbacks and width changes; `--help` says more."""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tests.e2e.torture.consistent.rounds import MOMENTS
from tests.e2e.torture.consistent.run import RATE, Verdict, torture
from tests.e2e.torture.schedule import tally
from tests.e2e.torture.telling import kept, narrator

from bench import report
from bench.cluster import NAMESPACE, running_cluster
from bench.consistent import OF_TORTURE

ENOUGH_ROUNDS = 36
"""In so many rounds kills must have come amid each of what is asked for."""
KEPT_ROUNDS = 100
"""Figures of shorter runs are only shown: they must not take the place of a long one's."""


async def _run(seed: int, count: int) -> int:
    say = narrator()
    with tempfile.TemporaryDirectory(prefix="streamgraft-torture-") as name:
        folder = Path(name)
        async with running_cluster(folder) as cluster:
            verdict = await torture(cluster, NAMESPACE, folder, seed, count, say)
            if verdict.problems:
                say(f"logs and resources are kept in {await kept(cluster, NAMESPACE)}")
    if missed := [moment for moment in MOMENTS if not verdict.during[moment]]:
        text = f"no kill came amid a {', or a '.join(missed)}: a blind run"
        verdict.problems += [text] if count >= ENOUGH_ROUNDS else []
    for problem in verdict.problems:
        say(problem)
    tell(verdict, seed)
    if verdict.problems:
        print(f"the same once more: make torture-consistent CHANGES={count} SEED={seed}")
    return 1 if verdict.problems else 0


def tell(verdict: Verdict, seed: int) -> None:
    """Show the figures, and keep them if the run was long enough."""
    figures = _figures(verdict)
    if verdict.runs < KEPT_ROUNDS:
        report.show("torture-consistent", figures)
        return
    report.write("torture-consistent", {"seed": seed, "records_per_s": RATE}, figures)
    report.note("consistent", {name: figures[name] for name in OF_TORTURE})


def _figures(verdict: Verdict) -> dict[str, float]:
    return {
        "torture_runs": verdict.runs,
        "torture_wrong": verdict.wrong,
        "records": verdict.records,
        "cuts": verdict.cuts,
        "rollbacks": verdict.rollbacks,
        "results_repeated_by_rollbacks": verdict.repeated,
        "round_s_p50": round(report.percentile(verdict.seconds, 0.5), 1),
        "round_s_max": round(max(verdict.seconds), 1),
        **{name.replace(" ", "_"): count for name, count in tally(verdict.struck).items()},
        **{f"struck_amid_{moment}": verdict.during[moment] for moment in MOMENTS},
        **{f"struck_{victim}": number for victim, number in sorted(verdict.victims.items())},
    }


def main() -> int:
    """Run; 1 if something is wrong at the end."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.e2e.torture.consistent", description=__doc__
    )
    parser.add_argument("--changes", type=int, default=100, help="rounds")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parsed = parser.parse_args()
    return asyncio.run(_run(parsed.seed, parsed.changes))


if __name__ == "__main__":
    sys.exit(main())
