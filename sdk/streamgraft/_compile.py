"""Compile one application in a process of its own: `python -m streamgraft._compile APP.PY OUT`.

The user's module is imported here and nowhere else, so that whatever it does to the process (a
patched library, a stray thread, an exit) ends with it. OUT receives a Compiled as JSON.
"""

import importlib
import sys
from pathlib import Path

import cloudpickle
from pydantic import ValidationError

from streamgraft import _errors as errors
from streamgraft._application import Application
from streamgraft._checks import check, notices
from streamgraft._compiled import Compiled, Finding
from streamgraft._graph import Notice
from streamgraft._location import Location, innermost
from streamgraft._values import refused
from streamgraft_common.adl import Adl
from streamgraft_common.spark_jvm import JvmFailed


def compile_application(file: Path) -> Compiled:
    """Import, check and plan the application of a module's file. Raises ApplicationError."""
    variable, application = _load(file)
    errors.raise_all(check(application.graph))
    adl, found = _planned(application, file, variable)
    return Compiled(
        adl=adl,
        notices=[str(notice) for notice in [*notices(application.graph), *found]],
        modules=_loaded_files(file.parent),
    )


def _load(file: Path) -> tuple[str, Application]:
    sys.path.insert(0, str(file.parent))
    start = Location(str(file), 1)
    try:
        module = importlib.import_module(file.stem)
    except ValidationError as error:
        place = innermost(error.__traceback__, file.parent) or start
        errors.raise_all([errors.InvalidArgument(place, *told) for told in refused(error)])
        raise
    except (Exception, SystemExit) as error:
        where = innermost(error.__traceback__, file.parent)
        if isinstance(error, SyntaxError) and error.filename:
            where = Location(error.filename, error.lineno or 1)
        raise errors.ModuleFailed(
            where or start, f"the module can't be imported: {type(error).__name__}: {error}"
        ) from error
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


def _planned(application: Application, file: Path, variable: str) -> tuple[Adl, list[Notice]]:
    # Only here does Spark come in: a graph that is wrong is told without waiting for a JVM.
    from streamgraft._adl import describe
    from streamgraft._planning import plan
    from streamgraft._planning_session import planning_session

    with planning_session(application.spark_conf) as spark:
        planned = plan(application.graph, spark, file.parent)
        errors.raise_all(planned.errors)
        return describe(application, planned, file, variable), planned.notices


def _loaded_files(folder: Path) -> list[str]:
    """Return what was imported from the folder, and not from a place below it that Python searches
    by itself: a virtual environment, or a package under development."""
    searched = [Path(entry).absolute() for entry in sys.path if entry]
    elsewhere = [place for place in searched if place != folder and place.is_relative_to(folder)]
    loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted(
        str(path.relative_to(folder))
        for path in map(Path, filter(None, loaded))
        if path.is_relative_to(folder) and not any(map(path.is_relative_to, elsewhere))
    )


def main() -> None:
    """Write what came of the application: its description, or what is wrong with it."""
    file, target = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        compiled = compile_application(file)
    except errors.ApplicationError as error:
        compiled = Compiled(errors=[Finding.of(item) for item in error.errors])
    except JvmFailed as error:
        compiled = Compiled(failure=str(error))
    target.write_text(compiled.model_dump_json(by_alias=True))


if __name__ == "__main__":
    main()
