"""What applications write in the place of single values."""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from streamgraft._streams import Stream

StreamLike = Stream | str
Given = ParamSpec("Given")
Result = TypeVar("Result")


def with_arguments(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a method say what is missing if it decorates a function itself, as `@app.operator`."""

    @wraps(method)
    def called(*positional: Given.args, **named: Given.kwargs) -> Result:
        if len(positional) > 1:
            raise TypeError(
                f"app.{method.__name__} takes arguments by name: write"
                f" @app.{method.__name__}(...), in whose parentheses they stand"
            )
        return method(*positional, **named)

    return called


def is_positive(value: object) -> bool:
    """Return whether a value is a finite number above 0."""
    return isinstance(value, int | float) and value is not True and 0 < value < math.inf


def operator_name(function: Callable[..., Any]) -> str:
    """Return the name of the operator that a function makes. Raises TypeError if it has none."""
    name: str | None = getattr(function, "__name__", None)
    if name is None:
        raise TypeError(
            f"{function!r} has no name that the operator could have: give it one with uid=, or"
            " write a function with def that calls this one"
        )
    return name.replace("_", "-")


def columns(key: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a key: what is no list is one, whatever it is."""
    several: Sequence[Any] = key if isinstance(key, list | tuple) else [key]
    return tuple(several)


def stream_names(inputs: StreamLike | Sequence[StreamLike]) -> tuple[str, ...]:
    """Return the names of streams. Raises TypeError."""
    several = [inputs] if isinstance(inputs, Stream | str) else inputs
    if not isinstance(several, list | tuple) or not all(
        isinstance(item, Stream | str) for item in several
    ):
        raise TypeError(f"an input is {inputs!r}: name a stream, or a list of streams")
    return tuple(item.name if isinstance(item, Stream) else item for item in several)
