"""The wheel and the source distribution, installed into empty environments."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.long]

ROOT = Path(__file__).parents[2]
WHERE = """
from streamgraft_local import paths, toolchain
import streamgraft_operator.__main__
toolchain.CONTROL_PLANE.key()
print(paths.DEPLOY)
"""
CONSOLE = "streamgraft_metrics_adapter/api/console/static"
WHOLE = {
    ROOT / "deploy/chart": "streamgraft_local/deploy/chart",
    ROOT / "metrics_adapter" / CONSOLE: CONSOLE,
}
"""Folders of which all files are in the wheel, and their places in it."""


def run(*command: str, code: int = 0) -> str:
    """Return what a command prints; fails with its words if it ends otherwise than expected."""
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=900)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def beneath(folder: Path) -> set[str]:
    """Return the files of a folder, also those in folders that it links to."""
    return {
        str((Path(place) / name).relative_to(folder))
        for place, _, names in os.walk(folder, followlinks=True)
        for name in names
    }


def test_wheel_and_sdist_install_into_an_empty_environment(tmp_path: Path) -> None:
    """With all that `streamgraft up` builds from; what an extra brings is asked for by name."""
    environment, dist = tmp_path / "venv", tmp_path / "dist"
    run(sys.executable, "-m", "venv", str(environment))
    python, program = (str(environment / "bin" / name) for name in ("python", "streamgraft"))
    run(python, "-m", "pip", "install", "--quiet", "hatchling")
    subprocess.run([python, "-m", "hatchling", "build", "-d", str(dist)], cwd=ROOT, check=True)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")

    again = tmp_path / "again"
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(again), str(sdist))
    (rebuilt,) = again.glob("*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    assert zipfile.ZipFile(rebuilt).namelist() == held
    for folder, place in WHOLE.items():
        wanted = beneath(folder)
        assert {"files/crds/jobs.yaml", "index.html"} & wanted
        assert {f"{place}/{name}" for name in wanted} - {*held} == set()

    constraints = ("-c", str(ROOT / "constraints.txt"))
    run(python, "-m", "pip", "install", "--quiet", *constraints, str(wheel))
    assert "submit" in run(program, "--help")
    assert "with the extra `local`" in run(program, "up", code=1)
    assert "No module named 'pyspark'" in run(python, "-c", "import pyspark", code=1)
    run(python, "-m", "pip", "install", "--quiet", *constraints, f"{wheel}[operator]")
    packaged = Path(run(python, "-c", WHERE).strip())
    assert packaged.is_relative_to(environment)
    for name in ("crds", "chart/templates", "controlplane/go.sum", "dashboards/grafana"):
        assert (packaged / name).exists()
    run(python, "-m", "pip", "install", "--quiet", *constraints, f"{wheel}[local]")
    run(python, "-c", "import streamgraft_pe_runtime.__main__")
    assert "--prometheus-url" in run(python, "-m", "streamgraft_metrics_adapter", "--help")
