"""Bundles: what goes in, that they are deterministic, and how its failures are reported."""

import io
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import streamgraft as sg
from streamgraft import _build_process
from streamgraft._builder import BuiltBundle, build_bundle, check_size
from streamgraft._built import Built
from streamgraft._location import Location
from streamgraft._module import load
from streamgraft_common.bundle import read_bundle

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount" / "app.py"

SMALL = """
import streamgraft as sg
app = sg.Application("small")
rows = app.kafka_source("rows", topic="rows", schema="a string")
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder and return the path of `app.py` there."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "app.py"


def failure(folder: Path, text: str) -> sg.ApplicationError:
    """Return the error with which the build of an `app.py` fails."""
    with pytest.raises(sg.ApplicationError) as caught:
        sg.build(write(folder, {"app.py": text}))
    return caught.value


def line(error: sg.ApplicationError) -> int | None:
    """Return the line that an error points at, which is in `app.py`."""
    assert error.location
    assert Path(error.location.file).name == "app.py"
    return error.location.line


def test_graph_errors_come_back_as_they_were(tmp_path: Path) -> None:
    """Kind, place, problem and remedy cross the process boundary; several stay several."""
    with pytest.raises(sg.InvalidApplication) as caught:
        sg.build(
            write(
                tmp_path,
                {
                    "app.py": SMALL
                    + 'app.kafka_sink("a", input="row", topic="a")\n'
                    + 'app.kafka_sink("B", input=rows, topic="b")\n'
                },
            )
        )
    first, second = caught.value.errors
    assert (type(first), line(first)) == (sg.UnknownStream, 5)
    assert (type(second), line(second)) == (sg.InvalidName, 6)
    assert first.remedy == "did you mean 'rows'?"


def test_errors_name_the_file_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that editors can open it."""
    monkeypatch.chdir(tmp_path)
    error = failure(tmp_path / "flights", "import streamgraft as sg\napp = sg.Application('a')\n")
    assert str(error).startswith("flights/app.py:2: the application has no source")


def test_exception_in_the_module(tmp_path: Path) -> None:
    """The line that raised, not the import machinery."""
    error = failure(tmp_path, "import json\n\njson.loads('{')\n")
    assert type(error) is sg.ModuleFailed
    assert line(error) == 3
    assert "JSONDecodeError" in error.problem


def test_values_that_a_model_refuses(tmp_path: Path) -> None:
    """Each with its name, and without a word of the model behind it."""
    call = "sg.Autoscaling(\n    maxwidth=3, min_width=-1\n)\n"
    error = failure(tmp_path, f"import streamgraft as sg\n\n{call}")
    assert [str(item).split(": ", 1)[1] for item in error.errors] == [
        "min_width is -1: Input should be greater than or equal to 0",
        "Autoscaling has no 'maxwidth': correct or remove it",
    ]


def test_values_that_no_check_has_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the description's model refuses at last is told as a refusal, not by a traceback."""
    target = tmp_path / "built.json"
    monkeypatch.setattr(sys, "argv", ["build", str(tmp_path / "app.py"), str(target), "{}"])
    wrong: Any = 9
    monkeypatch.setattr(_build_process, "build_application", lambda *_: sg.Placement(isolate=wrong))
    _build_process.main()
    (finding,) = Built.model_validate_json(target.read_bytes()).errors
    error = finding.error()
    assert (type(error), line(error)) == (sg.InvalidArgument, 1)
    assert error.problem == "isolate is 9"


def test_syntax_error(tmp_path: Path) -> None:
    """The line that does not parse."""
    assert line(failure(tmp_path, "x = 1\ny = (\n")) == 2


def test_module_that_exits(tmp_path: Path) -> None:
    """sys.exit at import is an error like any other."""
    error = failure(tmp_path, "import sys\nprint('noise')\nsys.exit(0)\n")
    assert line(error) == 3
    assert "SystemExit" in error.problem


def test_process_that_dies(tmp_path: Path) -> None:
    """What the module does to its process does not reach ours."""
    with pytest.raises(sg.BuildError, match="exit code 7"):
        sg.build(write(tmp_path, {"app.py": "import os\nos._exit(7)\n"}))


def test_a_function_that_needs_a_session_when_it_is_made(tmp_path: Path) -> None:
    """PySpark reads the names of types in the JVM."""
    made = "from pyspark.sql import functions as F\n\n\n@F.udf('long')\ndef one(n):\n    return 1\n"
    error = failure(tmp_path, made)
    assert type(error) is sg.ModuleFailed
    assert line(error) == 4
    assert "give functions such as F.udf a type" in error.remedy


@pytest.mark.parametrize("made", ["F.col('a')", "F.lit(1)", "F.expr('1')"])
def test_a_column_that_is_made_in_the_module(tmp_path: Path, made: str) -> None:
    """PySpark only asserts that there is a session."""
    error = failure(tmp_path, f"from pyspark.sql import functions as F\n\nONE = {made}\n")
    assert (type(error), line(error)) == (sg.ModuleFailed, 3)
    assert error.problem.endswith("AssertionError")
    assert "make columns (F.col, F.lit) in the operator's function" in error.remedy


def test_an_assertion_of_the_module_is_its_own(tmp_path: Path) -> None:
    error = failure(tmp_path, "assert not 1\n")
    assert (line(error), error.remedy) == (1, "")


STARTED = """
from types import SimpleNamespace
import pyspark
from pyspark.traceback_utils import CallSite

ENDED = []

def ends(what):
    return lambda: ENDED.append(what)

pyspark.SparkContext._active_spark_context = SimpleNamespace(
    _callsite=CallSite("getOrCreate", __file__, 10), stop=ends("context")
)
pyspark.SparkContext._gateway = SimpleNamespace(
    shutdown=ends("gateway"),
    proc=SimpleNamespace(stdin=SimpleNamespace(close=ends("JVM")), wait=ends("process")),
)
"""


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give back this process's driver, if it has one, and its path."""
    for name in ("_active_spark_context", "_gateway", "_jvm"):
        monkeypatch.setattr(SparkContext, name, None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("no_driver")
def test_a_module_that_starts_a_session(tmp_path: Path) -> None:
    """In a PE it would start a JVM of its own, before the PE's is there. Here it is ended: the
    tests of an application go on in this process."""
    module = tmp_path / "starts_a_session.py"
    module.write_text(STARTED + SMALL)
    with pytest.raises(sg.ModuleFailed) as caught:
        load(module)
    assert caught.value.location == Location(str(module), 10)
    assert caught.value.problem == "the module starts a Spark session"
    assert "use sparkSession of an input's frame" in caught.value.remedy
    assert sys.modules.pop(module.stem).ENDED == ["context", "gateway", "JVM", "process"]
    assert SparkContext._gateway is None


@pytest.mark.usefixtures("no_driver")
def test_a_session_that_was_there_is_nobodys_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in tests, which have one before they import the module."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    module = tmp_path / "has_a_session.py"
    module.write_text(SMALL)
    assert load(module)[0] == "app"
    cloudpickle.unregister_pickle_by_value(sys.modules.pop(module.stem))


def test_number_of_applications(tmp_path: Path) -> None:
    """Exactly one; a second name for the same one is fine."""
    assert "no application" in failure(tmp_path, "x = 1\n").problem
    two = SMALL + "other = sg.Application('other')\n"
    assert "2 applications" in failure(tmp_path, two).problem


def test_module_that_hides_another(tmp_path: Path) -> None:
    """A file must not be named like a module that is loaded before it."""
    file = tmp_path / "json.py"
    file.write_text(SMALL)
    with pytest.raises(sg.ModuleFailed, match="rename the file"):
        sg.build(file)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere.py", "there is no such file"),
        ("folder", "name the Python file"),
        ("app.zip", "name the Python file"),
        ("my-app.py", "my-app can't be imported: rename the file"),
    ],
)
def test_what_is_no_module(tmp_path: Path, name: str, why: str) -> None:
    """Only a Python file with an importable name is taken."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "app.zip").touch()
    (tmp_path / "my-app.py").touch()
    with pytest.raises(sg.BuildError, match=why):
        sg.build(tmp_path / name)


def test_included_path_that_does_not_exist(tmp_path: Path) -> None:
    """A slip in --include."""
    with pytest.raises(sg.BuildError, match="there is no such file or folder"):
        sg.build(write(tmp_path, {"app.py": SMALL}), include=[tmp_path / "nowhere"])


def test_size_limit() -> None:
    """A ConfigMap's limit, with the way out."""
    check_size(bytes(900_000))
    with pytest.raises(sg.BundleTooLarge, match="900,001 bytes"):
        check_size(bytes(900_001))


@pytest.mark.integration
def test_example_is_built_and_read_back() -> None:
    """The description of the example in the documentation."""
    bundle = build_bundle(EXAMPLE)
    adl = read_bundle(bundle.data).adl
    assert adl == bundle.adl
    assert (adl.name, adl.module, adl.application) == ("wordcount", "app", "app")
    assert bundle.notices == []
    operators = {operator.name: operator for operator in adl.operators}
    assert list(operators) == [
        "lines", "words", "counts", "frequency", "frequent-words", "print-rare",
    ]  # fmt: skip
    assert [name for name, operator in operators.items() if operator.stateful] == ["counts"]
    assert operators["counts"].region == "counting"
    assert operators["counts"].output_mode == "update"
    assert operators["words"].location == "app.py:18"
    assert adl.parameters == {"shortest-word": "3"}
    streams = {stream.name: stream for stream in adl.streams}
    assert streams["rare"].producer == "frequency"
    assert [field["name"] for field in streams["rare"].stream_schema["fields"]] == [
        "word", "count",
    ]  # fmt: skip


@pytest.mark.integration
def test_bundles_are_deterministic_and_hold_what_is_imported(tmp_path: Path) -> None:
    """Same files, same bytes, wherever and whenever; only what belongs to the application."""
    files = {
        "app.py": "import helper\n" + SMALL,
        "helper.py": "def late():\n    from package.inner import lazy\n",
        "package/__init__.py": "",
        "package/inner.py": "lazy = 1\n",
        "package/table.csv": "a,b\n",
        "package/template.py": "class {{ name }}:\n",
        "package/.hidden": "",
        "package/__pycache__/inner.pyc": "",
        "unrelated.py": "",
        "data/weather.csv": "x\n",
    }
    built: list[BuiltBundle] = []
    for name in ("first", "second"):
        module = write(tmp_path / name, files)
        include = tmp_path / name / "data"
        for path in sorted(module.parent.rglob("*")):
            os.utime(path, (len(built), len(built)))
        built.append(build_bundle(module, [include]))
    assert built[0].data == built[1].data
    assert built[0].files == [
        "app.py",
        "data/weather.csv",
        "helper.py",
        "package/__init__.py",
        "package/inner.py",
        "package/table.csv",
        "package/template.py",
    ]
    assert built[0].notices
    with zipfile.ZipFile(io.BytesIO(built[0].data)) as archive:
        assert archive.namelist() == ["adl.json", *built[0].files]
        assert archive.read("helper.py").decode() == files["helper.py"]


@pytest.mark.integration
def test_an_environment_in_the_folder_stays_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PEs have an environment of their own; many projects keep theirs beside the application."""
    module = write(tmp_path, {"app.py": "import installed\n" + SMALL, "venv/installed.py": ""})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "venv"))
    assert build_bundle(module).files == ["app.py"]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("files", "module", "editable", "notices"),
    [
        (
            {"app.py": "import mylib.tools\n" + SMALL, "src/mylib/tools.py": ""},
            "app.py",
            "src",
            ["app.py:1: mylib (src/mylib) is not in the bundle: the image must have it, or put it"
             " beside app.py"],
        ),
        (
            {
                "mypkg/__init__.py": "",
                "mypkg/app.py": "\nfrom mypkg.helpers import X\nimport mypkg.more\n" + SMALL,
                "mypkg/helpers.py": "X = 1\n",
                "mypkg/more.py": "",
            },
            "mypkg/app.py",
            ".",
            ["mypkg/app.py:2: mypkg.helpers is in the bundle as helpers: import it by that name,"
             " or the image must have mypkg"],
        ),
        (
            {
                "app.py": "import helper, spaced.inner, package.deep.one, yaml, json\n" + SMALL,
                "helper.py": "import numpy\n",
                "spaced/inner.py": "",
                "package/__init__.py": "from package.deep import one\n",
                "package/deep/__init__.py": "",
                "package/deep/one.py": "from . import two\n",
                "package/deep/two.py": "",
            },
            "app.py",
            ".",
            [],
        ),
    ],
)  # fmt: skip
def test_modules_that_a_pe_would_not_find_are_noticed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    module: str,
    editable: str,
    notices: list[str],
) -> None:
    """A package under development is found by the build, wherever it is, and not in the bundle."""
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / editable))
    usual = ("nothing reads", "has no sink")
    found = build_bundle(Path(module)).notices
    assert [item for item in found if not any(part in item for part in usual)] == notices


@pytest.mark.integration
def test_missing_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning needs a JVM."""
    monkeypatch.setenv("STREAMGRAFT_JAVA", sys.executable + "-no-java")
    with pytest.raises(sg.BuildError, match="it needs Java 17 or newer"):
        sg.build(write(tmp_path, {"app.py": SMALL}))


COUNTED = """
import streamgraft as sg
from pyspark.sql import functions as F
app = sg.Application("counted")
rows = app.kafka_source("rows", topic="rows", schema="a string")

@app.operator(inputs=rows, output_mode="update"{uid})
def {name}(rows):
    return rows.groupBy("a").agg(F.count("*").alias("n"))

app.kafka_sink("out", input={name}, topic="out")
"""


@pytest.mark.integration
def test_a_function_is_renamed_under_its_uid(tmp_path: Path) -> None:
    """Operator, stream and all that goes by their names stay, and the function is found."""
    old = COUNTED.format(name="counts", uid="")
    new = COUNTED.format(name="totals", uid=', uid="counts"')
    before, now = (
        read_bundle(sg.build(write(tmp_path / folder, {"app.py": text}))).adl
        for folder, text in (("old", old), ("new", new))
    )
    assert now == before
    (counts,) = [item for item in now.operators if item.stateful]
    assert (counts.name, counts.function, counts.outputs) == ("counts", "counts", ["counts"])
    app = sg.Application("one")

    @app.sink(inputs="counts", uid="store")
    def put(rows: object, batch: object) -> None:
        """Do nothing."""

    assert app.functions == {"store": put}


def test_a_uid_that_is_no_name_is_refused(tmp_path: Path) -> None:
    error = failure(tmp_path, COUNTED.format(name="counts", uid=', uid="Counts of a"'))
    assert "Counts of a" in str(error)
