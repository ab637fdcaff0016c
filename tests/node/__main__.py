"""`make test-node`: the chart, and a job in real pods, on a real kubelet with containerd.

Writes bench/results/node.json. Everything runs in namespaces of its own and ends with them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.chart.helm import helm
from tests.node import image, oci, others, place, programs
from tests.node.preflight import problems

from bench import report
from streamgraft_local import Display, toolchain
from streamgraft_local.errors import LocalError

_NAMESPACES = ("--net", "--mount", "--pid", "--uts", "--ipc")
_UNSHARE = ("unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc")
_RULE = "=" * 80
_LARGEST_MB = 2000
"""Of our image: what docs/operate/install.md says it has, and some room."""


def main() -> None:
    """Make what is needed, and play on the node."""
    if found := problems():
        said = "\n".join(f"  - {problem}" for problem in found)
        sys.exit(f"{_RULE}\nmake test-node was NOT RUN, no node can run here:\n{said}\n{_RULE}")
    work = Path(tempfile.mkdtemp(prefix="streamgraft-node-"))
    try:
        size = prepare(work)
        with place.cgroups():
            code = subprocess.run([*_UNSHARE, *_inside(work)], check=False).returncode
    except LocalError as error:
        sys.exit(f"make test-node was NOT RUN: {error}")
    if code:
        sys.exit(f"{_RULE}\nmake test-node FAILED ({code}); logs are in {work}\n{_RULE}")
    figures = json.loads((work / "figures.json").read_text())
    figures["left_over"] += len(place.cgroups_left())
    place.forget(work)
    settings = {"image_mb": size, "cpus": os.cpu_count() or 0}
    report.write("node", settings, figures)
    if figures["lost"] or figures["left_over"]:
        sys.exit("something was lost or left over")
    if size > _LARGEST_MB:
        sys.exit(f"the image has {size} MB, more than {_LARGEST_MB}: see what has made it grow")


def prepare(work: Path) -> int:
    """Make tools and images; return the size of ours in MB."""
    with Display() as display:
        tools = toolchain.prepare(display.report)
        programs.node_programs(display.report)
        programs.dns(display.report)
        ours = image.streamgraft(display.report)
        oci.write(work / "streamgraft.tar", ours, image.flights(display.report, ours))
        image.pause(display.report, work)
        others.kafka(display.report, tools, work)
        others.prometheus(tools, work)
    assert helm("version").returncode == 0
    return sum(layer.stat().st_size for layer in ours.layers) >> 20


def _inside(work: Path) -> tuple[str, ...]:
    # A shell as PID 1 reaps orphans; "; exit" keeps it from being replaced.
    python = f"{shutil.which(sys.executable)} -m tests.node.inside {work}; exit $?"
    return "bash", "-c", python


if __name__ == "__main__":
    main()
