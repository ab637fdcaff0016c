"""The licences of everything that an installation brings along: `python -m tests.licences`."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/operate/licences.md"
_HEAD = "| package | licence |\n|---|---|\n"
_SHORT = {
    "license :: osi approved :: ": "",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF",
}


def canonical(name: str) -> str:
    """Return a distribution's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licences() -> dict[str, str]:
    """Return the licence of each package by name, in alphabetical order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = {}
    extras = project["optional-dependencies"]
    parts = (extras[name] for name in ("adapter", "operator", "spark"))
    for text in (*project["dependencies"], *chain.from_iterable(parts)):
        _note(canonical(Requirement(text).name), found)
    return dict(sorted(found.items()))


def _note(name: str, found: dict[str, str]) -> None:
    """Note the licence of a distribution and of all that it needs here."""
    if name in found:
        return
    try:
        package = distribution(name)
    except PackageNotFoundError:  # for another platform or Python
        return
    metadata = package.metadata
    classifiers = [item for item in metadata.get_all("Classifier") or [] if "License ::" in item]
    words = metadata["License-Expression"] or "; ".join(classifiers) or metadata["License"] or ""
    found[name] = _short(words)
    for requirement in map(Requirement, package.requires or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _note(canonical(requirement.name), found)


def _short(words: str) -> str:
    first = words.strip().partition("\n")[0]
    for long, short in _SHORT.items():
        first = re.sub(re.escape(long), short, first, flags=re.IGNORECASE)
    return first


def page() -> str:
    """Return the page for operators: its text as it is, the table anew."""
    text, head, _ = PAGE.read_text().partition(_HEAD)
    return text + head + "".join(f"| {name} | {words} |\n" for name, words in licences().items())


if __name__ == "__main__":
    PAGE.write_text(page())
