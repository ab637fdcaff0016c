"""The pytest plugin: fixtures for the tests of one application.

The application's file is `app.py` beside pytest's configuration, or what the configuration's
`streamgraft_application` names. Nothing of Spark is imported before a test asks for it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamgraft import Application
    from streamgraft.testing import GraphTest
    from streamgraft.testing.live import LiveJob
    from streamgraft_local import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting that names the application's file."""
    parser.addini("streamgraft_application", "file of the application under test", default="app.py")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of tests that need an environment."""
    config.addinivalue_line("markers", "live: runs the whole application on an environment")


@pytest.fixture(scope="session")
def application_file(pytestconfig: pytest.Config) -> Path:
    """The file of the application under test."""
    return (pytestconfig.rootpath / str(pytestconfig.getini("streamgraft_application"))).absolute()


@pytest.fixture(scope="session")
def application(application_file: Path) -> "Application":
    """The application under test."""
    from streamgraft._module import load

    return load(application_file)[1]


@pytest.fixture(scope="session")
def spark(application: "Application") -> "Iterator[SparkSession]":
    """A small local Spark session, one for all tests, with the application's SQL settings.

    This process is in UTC meanwhile, as Spark's session and a job's pods are.
    """
    from streamgraft._analysis_session import analysis_session
    from streamgraft.cli._embedded import offer_tools
    from streamgraft.cli._progress import display

    with display() as steps:
        offer_tools(steps.report)
    conf = {"spark.sql.shuffle.partitions": "1", **application.spark_conf}
    with _in_utc(), analysis_session(conf) as session:
        yield session


@contextmanager
def _in_utc() -> Iterator[None]:
    """Let PySpark and its workers take times without a zone for those of UTC."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", "UTC")
            time.tzset()
            yield
    finally:
        time.tzset()


@pytest.fixture
def graph(application: "Application", spark: "SparkSession") -> "Iterator[GraphTest]":
    """The application's operators, to be run on rows; parameters are reset after each test."""
    from streamgraft.testing import GraphTest

    yield GraphTest(application, spark)
    application.bind({name: item.default for name, item in application.parameters.items()})


@pytest.fixture(scope="session")
def environment(pytestconfig: pytest.Config) -> "Iterator[Cluster]":
    """An embedded environment for this session, beside all others; it ends with the session.

    Who did not ask for live tests has them skipped: an environment takes its time, and its memory.
    """
    if "live" not in pytestconfig.option.markexpr:
        pytest.skip("it needs an environment: `streamgraft test --live`, or pytest with -m live")
    from streamgraft.testing._environment import session_environment

    with session_environment() as cluster:
        yield cluster


@pytest.fixture
def live_job(environment: "Cluster", application_file: Path) -> "Iterator[LiveJob]":
    """The whole application, as a job in a namespace of its own; healthy when the test begins."""
    from streamgraft.testing.live import LiveJob

    with LiveJob.of(environment, application_file) as job:
        yield job
