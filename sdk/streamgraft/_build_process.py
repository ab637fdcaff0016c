"""Build one application in a process of its own:
`python -m streamgraft._build_process APP.PY OUT PARAMETERS`.

The user's module is imported here and nowhere else, so that whatever it does to the process (a
patched library, a stray thread, an exit) ends with it. OUT receives a Built as JSON; PARAMETERS is
a JSON object of submission-time values.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from streamgraft import _errors as errors
from streamgraft._application import Application
from streamgraft._built import Built, Finding
from streamgraft._checks import check, notices
from streamgraft._graph import Notice
from streamgraft._imports import not_installed, top_level
from streamgraft._location import Location
from streamgraft._module import load
from streamgraft._streams import read_early
from streamgraft._values import refused
from streamgraft_common.adl import Adl
from streamgraft_common.spark_jvm import JvmFailed


def build_application(file: Path, parameters: Mapping[str, str]) -> Built:
    """Import, check and analyze the application of a module's file. Raises ApplicationError."""
    ours = top_level()
    variable, application = load(file)
    early = [
        Notice(
            application.graph.location,
            f"parameter {name!r} is read while the module is imported, and is the default there,"
            " whatever the job says: read it inside functions",
        )
        for name in read_early(application.parameters.values())
    ]
    application.bind(parameters)  # behind the import, as in a PE: only functions see the values
    errors.raise_all(check(application.graph))
    adl, found = _described(application, file, variable)
    return Built(
        adl=adl,
        notices=[str(notice) for notice in [*notices(application.graph), *early, *found]],
        modules=_loaded_files(file.parent),
        not_installed=not_installed(ours),
    )


def _described(application: Application, file: Path, variable: str) -> tuple[Adl, list[Notice]]:
    # Only here does Spark come in: a wrong graph is reported without waiting for a JVM.
    from streamgraft._adl import describe
    from streamgraft._analysis import analyze
    from streamgraft._analysis_session import analysis_session

    with analysis_session(application.spark_conf) as spark:
        given = application.parameters.values()
        analysis = analyze(application.graph, spark, file.parent, given)
        errors.raise_all(analysis.errors)
        return describe(application, analysis, file, variable), analysis.notices


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
    file, target, parameters = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    try:
        built = build_application(file, parameters)
    except errors.ApplicationError as error:
        built = Built(errors=[Finding.of(item) for item in error.errors])
    except ValidationError as error:  # a value that no check has looked at
        start = Location(str(file), 1)
        found = [errors.InvalidArgument(start, *item) for item in refused(error)]
        built = Built(errors=[Finding.of(item) for item in found])
    except JvmFailed as error:
        built = Built(failure=str(error))
    target.write_text(built.model_dump_json(by_alias=True))


if __name__ == "__main__":
    main()
