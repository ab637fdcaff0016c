"""Runs Prometheus' own tests of rules and queries."""

import subprocess
from pathlib import Path

from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain import prometheus
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import Module, build

PROMTOOL = Module(
    "promtool",
    Path(__file__).parent,
    "github.com/prometheus/prometheus/cmd/promtool",
    tags=prometheus.MODULE.tags,
)


def passes(cases: Path) -> None:
    """Fail with promtool's words unless all the cases of a file are as expected."""
    promtool("test", "rules", str(cases))


def promtool(*arguments: str) -> None:
    """Run it; fail with its words if it does."""
    program = build(Cache(cache_folder(), silent), PROMTOOL)
    command = (str(program), *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
