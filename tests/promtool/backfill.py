"""Gives a Prometheus a past: blocks written by its own tool, from samples in OpenMetrics' text."""

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.promtool.check import PROMTOOL

from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import build


def backfill(metric: str, samples: Iterable[tuple[str, float, float]], storage: Path) -> None:
    """Write samples of a gauge (labels as in `a="b",c="d"`, Unix time, value) into the folder of a
    Prometheus that does not run. Raises CalledProcessError."""
    promtool = build(Cache(cache_folder(), silent), PROMTOOL)
    with tempfile.NamedTemporaryFile("w", suffix=".om") as file:
        file.write(f"# TYPE {metric} gauge\n")
        file.writelines(
            f"{metric}{{{labels}}} {value!r} {time:.3f}\n" for labels, time, value in samples
        )
        file.write("# EOF\n")
        file.flush()
        tsdb = ("tsdb", "create-blocks-from", "openmetrics", "--quiet", file.name, str(storage))
        subprocess.run((str(promtool), *tsdb), check=True, capture_output=True, timeout=120)
