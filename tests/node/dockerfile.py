"""What deploy/image/Dockerfile says, so that an image is assembled from the same without Docker."""

import re
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Dockerfile:
    """The parts that assembling needs."""

    packages: tuple[str, ...]
    """Of Debian."""
    environment: dict[str, str]
    user: int
    extras: tuple[str, ...]
    """Of our package."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a Dockerfile of the form of ours. Raises ValueError for what is missing."""
        return cls(
            tuple(_one(r"--no-install-recommends \\\n +(.+?) \\\n", text).split()),
            dict(re.findall(r"^ENV (\w+)=(\S+)$", text, re.MULTILINE)),
            int(_one(r"^USER (\d+)$", text)),
            tuple(_one(r"install\.sh dependencies (.+)$", text).split()),
        )


def _one(pattern: str, text: str) -> str:
    if found := re.search(pattern, text, re.MULTILINE):
        return found[1]
    raise ValueError(f"the Dockerfile has no {pattern}")
