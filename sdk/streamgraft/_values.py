"""What is wrong with a value that a model refuses, in the words of this package."""

from collections.abc import Iterator

from pydantic import ValidationError


def refused(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield what is wrong and what to do, for each value that was refused."""
    for detail in error.errors(include_url=False):
        name = ".".join(map(str, detail["loc"])) or error.title
        if detail["type"] == "extra_forbidden":
            yield f"{error.title} has no {name!r}", "correct or remove it"
        else:
            yield f"{name} is {detail['input']!r}", detail["msg"].removeprefix("Value error, ")
