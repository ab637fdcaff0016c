"""Run the scenario of this pod; exit code 1 if it fails.

A pod that is deleted, as when the test takes too long, gets SIGTERM: the steps end, and what is
left of its grace period is for the clean-up.
"""

import asyncio
import os
import signal
import sys

from streamgraft.scenarios.runner import Runner
from streamgraft_common.kube import KubeClient, account_config
from streamgraft_common.resources import Scenario


async def main() -> int:
    """Return the exit code."""
    scenario = Scenario.model_validate_json(os.environ["STREAMGRAFT_SCENARIO"])
    namespace = os.environ["STREAMGRAFT_NAMESPACE"]
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    async with KubeClient(account_config()) as client:
        problems = await Runner(client, namespace, _say).run(scenario, ending)
    for problem in problems:
        _say(f"FAILED: {problem}")
    return 1 if problems else 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
