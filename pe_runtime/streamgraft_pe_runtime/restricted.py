"""Restricted properties: Spark settings from a Secret, such as the credentials of a store.

They reach the session only: neither the Job, nor the command line, nor Spark's user interface
shows them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NotSettable(Exception):
    """A restricted property that a running session doesn't take; the message says which."""


def read(folder: Path, without: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the keys and values of a mounted Secret, but for those that are no settings."""
    return {
        file.name: file.read_text().strip()
        for file in sorted(folder.iterdir())
        if not file.name.startswith(".") and file.name not in without
    }


def apply(session: "SparkSession", properties: dict[str, str]) -> None:
    """Set the properties. Raises NotSettable."""
    from pyspark.errors import PySparkException

    for name, value in properties.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise NotSettable(
                f"key {name} of restrictedPropertiesSecret can't be set in a running session:"
                " put it into sparkConf"
            ) from error
