"""The handles that an application's code holds: streams and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Stream:
    """A stream of the graph, by name.

    The stream of a decorated function can be called like the function, so that a test can run an
    operator on batch frames.
    """

    def __init__(self, name: str, function: Callable[..., DataFrame] | None = None) -> None:
        self.name = name
        self._function = function

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """Run the operator's function on frames. Raises TypeError if it has none."""
        if self._function is None:
            raise TypeError(f"stream {self.name!r} is not made by a Python function")
        return self._function(*frames)

    def __repr__(self) -> str:
        return f"<Stream {self.name}>"


class Parameter:
    """A submission-time value: its default until the application is bound."""

    def __init__(self, name: str, default: str) -> None:
        self.name = name
        self.default = default
        self._value = default
        self._is_read = False

    @property
    def value(self) -> str:
        """What it is in this submission."""
        self._is_read = True
        return self._value

    @value.setter
    def value(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"<Parameter {self.name}={self._value!r}>"


@contextmanager
def values_read(parameters: Iterable[Parameter]) -> Iterator[dict[str, str]]:
    """Collect the values that are looked at meanwhile, by name; they are there in the end."""
    watched, found = list(parameters), dict[str, str]()
    for item in watched:
        item._is_read = False
    try:
        yield found
    finally:
        found |= {item.name: item._value for item in watched if item._is_read}
