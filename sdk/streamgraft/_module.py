"""Import a user's module and find its application."""

import importlib
import sys
from pathlib import Path

import cloudpickle
from pydantic import ValidationError

from streamgraft import _errors as errors
from streamgraft._application import Application
from streamgraft._location import Location, innermost
from streamgraft._values import refused

_WITHOUT_SESSION = (
    "while a module is imported there is no Spark session yet: give functions such as F.udf a type"
    " (T.LongType()) instead of its name, or make them in the operator's function"
)


def load(file: Path) -> tuple[str, Application]:
    """Return the module's one application and the variable that holds it.

    The module's folder is put on sys.path. Raises ApplicationError.
    """
    sys.path.insert(0, str(file.parent))
    start = Location(str(file), 1)
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
        problem = f"the module can't be imported: {type(error).__name__}: {error}"
        advice = _WITHOUT_SESSION if "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error) else ""
        raise errors.ModuleFailed(where or start, problem, advice) from error
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
