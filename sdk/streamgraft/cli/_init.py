"""`streamgraft init`: a new application with tests that pass."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from streamgraft.cli import _output as output
from streamgraft.cli._output import CommandError
from streamgraft_common import names

_PLACEHOLDER = "NAME"
_SUFFIX = ".txt"
"""Of the template's files, so that no tool takes them for the project's own."""


def run(folder: Path, name: str | None) -> None:
    """Write the project into a folder. Raises CommandError rather than overwrite a file."""
    name = name or folder.absolute().name
    if len(name) > names.MAX_NAME or not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name):
        raise CommandError(
            f"{name!r} can't be an application's name: use at most {names.MAX_NAME} lower-case"
            " letters, digits and hyphens, beginning with a letter (--name)"
        )
    template = _texts(files("streamgraft.cli") / "template")
    contents = {folder / path: text.replace(_PLACEHOLDER, name) for path, text in template.items()}
    if existing := [str(path) for path in contents if path.exists()]:
        raise CommandError(f"{', '.join(existing)}: exists already; choose another folder")
    for path, text in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        output.say(f"{path}")
    output.say(f"Next: cd {folder} && streamgraft test")


def _texts(folder: Traversable, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.is_dir():
            found |= _texts(item, f"{prefix}{item.name}/")
        elif item.name.endswith(_SUFFIX):
            found[prefix + item.name.removesuffix(_SUFFIX)] = item.read_text()
    return found
