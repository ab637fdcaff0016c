"""Import a user's module and find its application."""

import importlib
import sys
from pathlib import Path
from typing import Any

import cloudpickle
from pydantic import ValidationError

from streamgraft import _errors as errors
from streamgraft._application import Application
from streamgraft._location import Location, innermost
from streamgraft._values import refused

_WITHOUT_SESSION = (
    "while a module is imported there is no Spark session yet: make columns (F.col, F.lit) in the"
    " operator's function, and give functions such as F.udf a type (T.LongType()) instead of its"
    " name, or make them there, too"
)
_OWN_SESSION = (
    "leave SparkSession.builder out, as a PE brings its own session: use sparkSession of an input's"
    " frame"
)


def load(file: Path) -> tuple[str, Application]:
    """Return the module's one application and the variable that holds it.

    The module's folder is put on sys.path. Raises ApplicationError.
    """
    sys.path.insert(0, str(file.parent))
    start, driver = Location(str(file), 1), _spark_context()
    try:
        module = importlib.import_module(file.stem)
    except ValidationError as error:
        place = innermost(error.__traceback__, file.parent) or start
        errors.raise_all([errors.InvalidArgument(place, *found) for found in refused(error)])
        raise
    except (Exception, SystemExit) as error:
        where = innermost(error.__traceback__, file.parent)
        if isinstance(error, SyntaxError) and error.filename:
            where = Location(error.filename, error.lineno or 1)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        problem = f"the module can't be imported: {said}"
        raise errors.ModuleFailed(where or start, problem, _advice(error)) from error
    if driver is None and (started := _spark_context()) is not None:
        where = _started_at(started, file.parent)
        _end(started)
        raise errors.ModuleFailed(where or start, "the module starts a Spark session", _OWN_SESSION)
    if module.__file__ != str(file):
        raise errors.ModuleFailed(
            start, f"its name hides another module ({module.__file__})", "rename the file"
        )
    cloudpickle.register_pickle_by_value(module)
    found = {
        id(value): (name, value)
        for name, value in reversed(vars(module).items())
        if isinstance(value, Application)
    }
    if len(found) != 1:
        raise errors.ModuleFailed(
            start,
            f"the module has {len(found) or 'no'} application{'s' * (len(found) > 1)}",
            "give it exactly one: app = streamgraft.Application(...)",
        )
    return next(iter(found.values()))


def _advice(error: BaseException) -> str:
    """Return what to do about an import that has failed, if it is known."""
    if "JAVA_GATEWAY_EXITED" in str(error):
        return _OWN_SESSION
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    bare = isinstance(error, AssertionError) and not str(error) and inside.startswith("pyspark.")
    return _WITHOUT_SESSION if bare or "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error) else ""


def _spark_context() -> Any:
    """Return this process's SparkContext; None, too, where nothing of Spark was imported."""
    kind = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(kind, "_active_spark_context", None)


def _started_at(context: Any, folder: Path) -> Location | None:
    """Return the line that started a SparkContext, if it is in a folder."""
    called = context._callsite
    if not called.file or not Path(called.file).is_relative_to(folder):
        return None
    return Location(called.file, called.linenum)


def _end(context: Any) -> None:
    """Stop Spark and the JVM that PySpark has started for it: this process may start another."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    (SparkSession._instantiatedSession or context).stop()
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with that
        gateway.proc.wait()
