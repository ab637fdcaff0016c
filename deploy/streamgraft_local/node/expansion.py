"""Text of a container: $(VARIABLE) as Kubernetes expands it, and mount paths made real.

A process can't have folders mounted over its root, so every path below a volume's mountPath that
shows in an environment variable, in the command or in its arguments is rewritten to where the
volume really is. An occurrence counts if it is a whole path prefix: nothing that could belong to a
longer path stands before it (except `file://`), and it ends there or a `/` or a character that
can't be part of a file name follows.
"""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; unknown names stay as they are, `$$` is a literal `$`."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def rewrite(text: str, mounts: Mapping[str, str]) -> str:
    """Replace mount paths (keys) by real folders (values); the longest mount path wins."""
    ordered = sorted((path for path in mounts if path.strip("/")), key=len, reverse=True)
    if not ordered:
        return text
    real = {path.rstrip("/"): mounts[path] for path in ordered}
    choices = "|".join(re.escape(path.rstrip("/")) for path in ordered)
    pattern = rf"(?:(?<![\w./-])|(?<=file://))(?:{choices})(?![\w.-])"
    return re.sub(pattern, lambda match: real[match[0]], text)
