"""Checks of the parameters and annotations of an operator's function."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from streamgraft._errors import ApplicationError, InvalidSignature
from streamgraft._graph import OperatorNode
from streamgraft_common.batches import Batch

_UNANNOTATED = inspect.Parameter.empty


def signature_errors(operator: OperatorNode) -> Iterator[ApplicationError]:
    """Yield what is wrong with the signature: number of parameters, then their annotations."""
    if operator.function is None:
        return
    if inspect.iscoroutinefunction(operator.function) or inspect.isgeneratorfunction(
        operator.function
    ):
        yield InvalidSignature(
            operator.location, f"{operator.name!r} is not a plain function", "return the result"
        )
        return
    expected = _expected(operator)
    signature = inspect.signature(operator.function)
    try:
        signature.bind(*expected)
    except TypeError as error:
        yield InvalidSignature(
            operator.location,
            f"{operator.name!r} is called with {len(expected)} value(s)"
            f" ({', '.join(expected)}), but has {len(signature.parameters)} parameter(s): {error}",
            "give it one parameter for each",
        )
        return
    wanted = list(zip(signature.parameters.values(), expected, strict=False))
    for parameter, type_name in wanted:
        if parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            yield from _annotation_errors(
                operator, f"parameter {parameter.name!r}", parameter.annotation, type_name
            )
    result = "None" if operator.kind == "sink" else "DataFrame"
    yield from _annotation_errors(operator, "the result", signature.return_annotation, result)


def _expected(operator: OperatorNode) -> list[str]:
    if operator.kind == "source":
        return ["SparkSession"]
    if operator.kind == "sink":
        return ["DataFrame", "int"]
    return ["DataFrame"] * len(operator.inputs)


def _annotation_errors(
    operator: OperatorNode, what: str, annotation: Any, wanted: str
) -> Iterator[ApplicationError]:
    assert operator.function is not None
    found = _type_name(annotation, operator.function)
    if found is not None and found != wanted:
        yield InvalidSignature(
            operator.location,
            f"{what} of {operator.name!r} is annotated as {found}, but is a {wanted}",
            f"annotate it with {'pyspark.sql.' * (wanted not in ('int', 'None'))}{wanted}",
        )


def _type_name(annotation: Any, function: Callable[..., Any]) -> str | None:
    """Return how the annotation reads; plain names for Spark's own classes, None if there is none.

    A text annotation may name something that exists for type checkers only: then its last part
    has to do.
    """
    if annotation is _UNANNOTATED:
        return None
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, getattr(function, "__globals__", {}))
        except Exception:
            name = str(annotation).rpartition(".")[2]
            return "int" if name == Batch.__name__ else name
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Batch:
        return "int"
    if not isinstance(annotation, type):
        return str(annotation)
    if annotation.__module__.startswith("pyspark.sql") or annotation.__module__ == "builtins":
        return annotation.__name__
    return f"{annotation.__module__}.{annotation.__qualname__}"
