"""The documentation's site: built, complete, and made from the code as it is."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path, PurePosixPath

import pytest
from tests.test_docs import prose

from streamgraft.cli._app import app
from streamgraft_common.resources import KINDS
from website.hooks import resolved
from website.reference import command_line, language, metrics, programs, resources

ROOT = Path(__file__).parents[1]
DOCS = "docs"


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    """Every page is in the navigation, and every link and anchor leads somewhere."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in PAGES}
    assert [page for page in pages if not (tmp_path / page).is_file()] == []
    lost = {path.name: headings(path) - shown(tmp_path, path) for path in PAGES}
    assert {name: missing for name, missing in lost.items() if missing} == {}


def headings(path: Path) -> set[str]:
    """Return the headings of a page, down to the level that has anchors on the site."""
    found = (re.fullmatch(r"#{1,3} (.+)", line) for line in prose(path))
    return {re.sub(r"[`*]", "", match[1]) for match in found if match}


def shown(site: Path, path: Path) -> set[str]:
    """Return the headings of a page on the site."""
    page = (site / path.relative_to(ROOT / "docs").with_suffix(".html")).read_text()
    found = re.findall(r"<h[123] id=[^>]*>(.*?)<a class=\"headerlink\"", page, re.DOTALL)
    return {unescape(re.sub(r"<[^>]*>", "", heading)).strip() for heading in found}


PAGES = sorted(ROOT.glob("docs/**/*.md"))


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        (f"[a]({DOCS}/use/a.md#b)", "README.md", "[a](use/a.md#b)"),
        (f"![a]({DOCS}/images/a.svg)", "README.md", "![a](images/a.svg)"),
        ("[a](../../README.md)", f"{DOCS}/use/b.md", "[a](../index.md)"),
        ("[a](../operate/c.md)", f"{DOCS}/use/b.md", "[a](../operate/c.md)"),
        ("[`x.py`](../../sdk/x.py)", f"{DOCS}/use/b.md", "`x.py`"),
        ("[x](../../sdk/x.py)", f"{DOCS}/use/b.md", "x (`sdk/x.py`)"),
        ("[a](https://example.com/a.md), [b](#c)", "README.md", None),
    ],
)
def test_links(text: str, place: str, wanted: str | None) -> None:
    """Those that leave the folder become what they name."""
    assert resolved(text, PurePosixPath(place)) == (wanted or text)


def test_the_reference_has_every_command_field_and_name() -> None:
    text = command_line()
    assert "## streamgraft savepoint create\n" in text
    assert "`--create-topics`" in text
    assert len([line for line in text.splitlines() if line.startswith("## ")]) > len(
        app.registered_commands
    )
    text = resources()
    assert [kind.kind for kind in KINDS if f"\n## {kind.kind}\n" not in text] == []
    assert "| `spec.bundle.git.url` | string |" in text
    text = metrics()
    for name in (
        "streamgraft_pe_lag_records",
        "streamgraft_operator_reconciles",
        "streamgraft_job_phase",
    ):
        assert f"| `{name}` |" in text
    assert "| `streamgraft_adapter_last_refresh_timestamp_seconds` | gauge |" in text
    assert "| `--lease` | `streamgraft-operator` |" in (text := programs())
    assert "| `--prometheus-url` | required |" in text
    text = language()
    assert "### Application.kafka_source\n" in text
    assert "| `latency_seconds` | `None` | Longest time that records may wait" in text
