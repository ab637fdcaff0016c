"""`streamgraft suite --junit`: what it writes, and when."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.sdk import test_cli_rights
from tests.sdk.test_cli import bundle
from tests.sdk.test_cli_rights import BECOMES, invoked, words

__all__ = ["words"]


def test_what_is_known_when_time_is_over_is_written(
    words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reporter must not take what has not ended for a success."""
    status = {"phase": "Running", "passed": ["a"], "running": ["b"], "pending": ["c"]}
    monkeypatch.setitem(BECOMES, "testsuites", status)
    results = tmp_path / "results.xml"
    words["RESULTS"] = str(results)
    result, _ = invoked("suite SUITE --junit RESULTS --timeout 1", words, tmp_path)
    assert result.exit_code == 1
    assert "TestSuite t has not ended after 1 s" in result.output
    root = ElementTree.parse(results).getroot()
    assert (root.attrib["name"], root.attrib["tests"], root.attrib["errors"]) == ("t", "3", "2")


def test_nothing_is_written_of_a_run_that_did_not_begin(
    words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods of the last one are there, and clean up."""
    monkeypatch.setattr(test_cli_rights, "SUITES", "no such selector")
    results = tmp_path / "results.xml"
    words["RESULTS"] = str(results)
    result, _ = invoked("suite SUITE --junit RESULTS --timeout 1", words, tmp_path)
    assert result.exit_code == 1
    assert "the last run of TestSuite t is still there after 1 s" in result.output
    assert not results.exists()


def test_results_are_written_at_the_end(words: dict[str, str], tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    words["RESULTS"] = str(results)
    result, _ = invoked("suite SUITE --junit RESULTS", words, tmp_path)
    assert result.exit_code == 0, result.output
    assert ElementTree.parse(results).getroot().attrib["name"] == "t"


@pytest.mark.parametrize(
    ("place", "why"), [("no/such/x.xml", "no such folder"), ("", "directory.")]
)
def test_a_place_that_takes_no_results_is_refused_before_anything_runs(
    words: dict[str, str], tmp_path: Path, place: str, why: str
) -> None:
    words["RESULTS"] = str(tmp_path / place)
    result, seen = invoked("suite SUITE --junit RESULTS", words, tmp_path)
    assert result.exit_code != 0
    assert why in " ".join(result.output.split())
    assert seen.used == set()


def test_a_bundle_that_can_not_be_uploaded_leaves_the_last_run_as_it_is(
    words: dict[str, str], tmp_path: Path
) -> None:
    words["BUNDLE"] = str(bundle(tmp_path, 1_200_000))
    result, seen = invoked("suite SUITE --bundle BUNDLE", words, tmp_path)
    assert result.exit_code == 1
    assert "a ConfigMap carries 900,000" in " ".join(result.output.split())
    assert seen.used == set()
