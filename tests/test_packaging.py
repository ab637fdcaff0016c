"""What is released: everything imported is declared, and everything needed is in the wheel."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.licences import PAGE, canonical, licences, page

from streamgraft_local.paths import DEPLOY

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
INCLUDED = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
EXTRAS = {
    "autoscaler/streamgraft_autoscaler": (),
    "common/streamgraft_common": ("operator", "spark"),
    "deploy/streamgraft_local": (),
    "metrics_adapter/streamgraft_metrics_adapter": ("adapter",),
    "operator/streamgraft_operator": ("operator",),
    "pe_runtime/streamgraft_pe_runtime": ("spark",),
    "sdk/streamgraft": ("spark",),
}
"""Without which a folder's modules, or some of them, are not complete."""
TESTS_OF_USERS = {"pytest"}
"""Imported by the pytest plugin, which only pytest loads."""
FREE = re.compile(
    r"apache|\bmit\b|bsd|isc|mpl|mozilla|psf|python software foundation|unlicense|0bsd|zlib"
    r"|apache-2\.0|public domain",
    re.IGNORECASE,
)


def names(requirements: list[str]) -> set[str]:
    """Return the canonical names of requirements."""
    return {canonical(Requirement(item).name) for item in requirements}


def imported(folder: Path) -> set[str]:
    """Return the top-level modules that the files below a folder import."""
    found = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {item.name.partition(".")[0] for item in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names)


def declared(*extras: str) -> set[str]:
    """Return the canonical names of what an installation with these extras asks for."""
    optional = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"]]
    for extra in extras:
        wanted += optional[extra]
    return names(wanted)


EVERYTHING = declared("adapter", "operator", "spark")


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_imported_is_declared(source: str) -> None:
    wanted, providers = declared(*EXTRAS[source]), packages_distributions()
    ours = {Path(item).name for item in SOURCES}
    missing = {
        module
        for module in imported(ROOT / source) - ours - TESTS_OF_USERS
        if not wanted & {canonical(name) for name in providers.get(module, [module])}
    }
    assert not missing


@pytest.mark.parametrize(
    ("extras", "modules"),
    [
        ((), "streamgraft streamgraft.cli streamgraft.cli._submit streamgraft.cli._replay"),
        (("operator",), "streamgraft_operator.__main__"),
        (("adapter",), "streamgraft_metrics_adapter.__main__"),
        (("spark",), "streamgraft._build_process streamgraft_pe_runtime.__main__"),
        (("adapter", "operator"), "streamgraft_local.foreground"),
    ],
)
def test_a_part_runs_with_its_extra_alone(extras: tuple[str, ...], modules: str) -> None:
    """An installation without the others has no module of theirs."""
    wanted, providers = declared(*extras), packages_distributions()
    absent = [
        module
        for module, by in providers.items()
        if {canonical(name) for name in by} & (EVERYTHING - wanted)
    ]
    assert "pyspark" in absent or "spark" in extras
    code = f"import sys; sys.modules.update(dict.fromkeys({absent}))"
    imports = "".join(f"; import {module}" for module in modules.split())
    done = subprocess.run(
        [sys.executable, "-c", code + imports], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["build app.py", "test"])
def test_what_needs_spark_says_so(command: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("")
    code = (
        "import sys, importlib.util as util; found = util.find_spec;"
        "util.find_spec = lambda name, *rest: name != 'pyspark' and found(name, *rest) or None;"
        f"sys.argv[1:] = {command.split()}; from streamgraft.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "with the extra `spark`" in done.stderr


def test_whatever_the_embedded_environment_reads_is_in_the_wheel() -> None:
    """Each folder below deploy/ that its code names."""
    named = set()
    for file in (ROOT / "deploy/streamgraft_local").rglob("*.py"):
        named |= set(re.findall(r'DEPLOY / "([a-z-]+)', file.read_text()))
    assert named >= {"controlplane", "crds", "manifests", "prometheus"}
    assert {f"deploy/{name}" for name in named} <= set(INCLUDED)
    for source, target in INCLUDED.items():
        assert (ROOT / source).exists()
        assert target == f"streamgraft_local/deploy/{source.removeprefix('deploy/')}"


def test_a_checkout_uses_its_own_files() -> None:
    assert DEPLOY == ROOT / "deploy"


def test_versions_agree() -> None:
    """The project's and the chart's; the changelog names it, or has only what is to come."""
    version = PROJECT["project"]["version"]
    chart = (ROOT / "deploy/chart/Chart.yaml").read_text()
    assert f"\nversion: {version}\n" in chart
    assert f"\nappVersion: {version}\n" in chart
    released = re.findall(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[:2] in (["Unreleased"], ["Unreleased", version], [version])


def test_licences_go_with_ours() -> None:
    """Apache 2.0 may be linked with each of them."""
    assert {name: words for name, words in licences().items() if not FREE.search(words)} == {}


def test_the_list_of_licences_is_complete() -> None:
    """Packages for other platforms and Pythons may be missing here, and on the page."""
    assert PAGE.read_text() == page()
