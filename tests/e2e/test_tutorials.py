"""Every command and file of the tutorials, in their order, as a reader would type them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.long]

TUTORIALS = Path(__file__).parents[2] / "docs/tutorials"
ORDER = (
    *("first-application", "your-topic", "scale-by-objective"),
    *("exact-files", "shared-streams", "kills-on-purpose", "operate-in-production"),
)
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP_SECONDS = 900


class Reader:
    """Types what the pages say into one shell after the other, in one folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = self._kept = folder
        self._environment = environment

    def read(self, text: str) -> None:
        """Follow a page; output that it shows must be in that of the command before it."""
        output = ""
        for language, name, body in BLOCK.findall(text):
            if language == "sh" and name != "install":
                output = self._run(body)
            elif language == "text" and name == "shown":
                assert [line for line in body.splitlines() if line not in output.splitlines()] == []
            elif name and language in ("python", "yaml"):
                (self._folder / name).write_text(body)
            elif language == "python":
                assert body in (self._folder / "app.py").read_text()

    def _run(self, script: str) -> str:
        """Run a block, which may change the folder and the environment of those behind it."""
        place, exported = self._kept / ".place", self._kept / ".exported"
        before = f". {exported}\n" if exported.exists() else ""
        keep = f"pwd > {place}\nexport -p > {exported}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{before}{script}\n{keep}"],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=STEP_SECONDS,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        self._folder = Path(place.read_text().strip())
        return done.stdout


def test_tutorials(tmp_path: Path) -> None:
    """In an environment of its own, which is down and deleted behind the last page."""
    home = tmp_path / "home"
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STREAMGRAFT_HOME": str(home),
    }
    for name in ("KUBECONFIG", "STREAMGRAFT_JAVA", "STREAMGRAFT_JARS", "STREAMGRAFT_CDS_ARCHIVE"):
        environment.pop(name, None)
    reader = Reader(folder, environment)
    try:
        for name in ORDER:
            reader.read((TUTORIALS / f"{name}.md").read_text())
    finally:
        subprocess.run(["streamgraft", "down", "--delete"], env=environment, check=True)
    assert not [path for path in home.rglob("*") if path.is_file()]
