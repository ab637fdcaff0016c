"""Check that an operator's function can be sent to a Python worker.

Spark pickles whatever the functions inside an operator refer to. A lock or a session would fail
only when the first batch runs, so everything that the function captures is tried at build time.
"""

import contextlib
import dis
import inspect
import socket
import threading
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

from streamgraft._application import Application
from streamgraft._errors import ApplicationError, NotSerializable
from streamgraft._graph import OperatorNode
from streamgraft._streams import Parameter, Stream

_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition)
_SPARK = {
    "SparkSession": "use the `sparkSession` of an input frame",
    "SparkContext": "use the `sparkSession` of an input frame",
    "DataFrame": "make it inside the function",
}


def serialization_errors(operator: OperatorNode) -> Iterator[ApplicationError]:
    """Yield one error for each captured value that cannot be serialized."""
    if not isinstance(operator.function, FunctionType):
        return
    for name, value in captured(operator.function):
        if found := _obstacle(value):
            what, remedy = found
            yield NotSerializable(
                operator.location,
                f"{operator.name!r} captures {name!r}, {what}, which can't be serialized",
                remedy,
            )


def captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of everything that the function refers to outside of itself.

    Follows the functions of the same module that it calls.
    """
    seen: set[int] = set()
    pending = [function]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for name, value in _references(current):
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                pending.append(value)
            elif id(value) not in seen:
                seen.add(id(value))
                yield name, value


def _references(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # a cell that was not assigned yet
            yield name, cell.cell_contents
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            yield parameter.name, parameter.default
    for name in sorted(_global_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _global_names(code: CodeType) -> set[str]:
    names = {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _obstacle(value: Any) -> tuple[str, str] | None:
    """Return what the value is and what to do, if it can't be serialized."""
    if isinstance(value, ModuleType | Application | Stream | Parameter):
        return None
    if isinstance(value, _LOCKS):
        return "a lock", "make it inside the function"
    if isinstance(value, socket.socket):
        return "a socket", "open it inside the function"
    for kind in type(value).__mro__:
        if kind.__module__.startswith("pyspark.") and kind.__name__ in _SPARK:
            return f"a {kind.__name__}", _SPARK[kind.__name__]
    try:
        cloudpickle.dumps(value)
    except Exception as error:
        return f"a {type(value).__name__} ({error})", "make it inside the function"
    return None
