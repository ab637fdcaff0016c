"""Names of others in PromQL and in the exposition: escaped where they are written.

The API server refuses most odd names, but a query or an exposition is everybody's: one quote in one
name would break it for all.
"""

import re

_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def quoted(text: str) -> str:
    """Return a text as a string literal of PromQL, or a label's value of the exposition."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def labels(**values: str) -> str:
    """Return labels as they stand between the braces of a sample."""
    return ",".join(f"{name}={quoted(value)}" for name, value in values.items())


def alternatives(texts: list[str]) -> str:
    """Return a regular expression, as a quoted literal, that matches any of the texts and no
    other."""
    return quoted("|".join(_NO_NAME.sub(_escaped, text) for text in texts))


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    # RE2 takes a backslash before punctuation only; in a class all but these stand for themselves.
    return f"\\{character}" if character in "\\^]-[" else f"[{character}]"
