"""Settings that reach a PE beside its graph metadata: trace levels, secrets, profilers."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgraft_common.resources import PROCESSING_ELEMENT, ProcessingElementSpec
from streamgraft_pe_runtime import restricted
from streamgraft_pe_runtime.repository_access import restricted_properties
from streamgraft_pe_runtime.settings import RESTRICTED_PROPERTIES, Settings
from streamgraft_pe_runtime.trace_levels import TraceLevels

_NAMES = ("NAMESPACE", "JOB", "POD", "POD_UID", "BIND_ADDRESS", "BUNDLE", "CHECKPOINT_ROOT")
ENVIRONMENT = {
    **{f"STREAMGRAFT_{name}": "x" for name in _NAMES},
    "STREAMGRAFT_SLOTS": "1",
    "STREAMGRAFT_SPARK_CONF": "{}",
}
"""What every pod has."""

RUNTIME = logging.getLogger("streamgraft_pe_runtime")


@pytest.fixture
def levels() -> Iterator[None]:
    """Leave the levels of this process as they were."""
    loggers = [logging.getLogger(), RUNTIME, logging.getLogger("streamgraft_common")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def pe(settings: dict[str, Any], inherited: dict[str, Any] | None = None) -> ProcessingElementSpec:
    """Return the spec of a ProcessingElement with these settings."""
    spec = {"job": "j", "peId": 0, "stageName": "pe-0"}
    found = {**spec, "settings": settings, "inherited": inherited or {}}
    return ProcessingElementSpec.model_validate(found)


@pytest.mark.usefixtures("levels")
async def test_each_domain_has_its_level() -> None:
    followed = TraceLevels("WARN")
    followed.follow(pe({"appTraceLevel": "ERROR"}, {"runtimeTraceLevel": "DEBUG"}))
    application = logging.getLogger("some.application")
    assert application.getEffectiveLevel() == logging.ERROR
    assert RUNTIME.getEffectiveLevel() == logging.DEBUG
    followed.follow(pe({}))
    assert application.getEffectiveLevel() == RUNTIME.getEffectiveLevel() == logging.INFO
    followed.follow(pe({"appTraceLevel": "OFF"}))
    assert not application.isEnabledFor(logging.CRITICAL)


@pytest.mark.usefixtures("levels")
async def test_spark_gets_the_newest_level_of_the_runtime() -> None:
    levels: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    followed = TraceLevels("WARN")
    followed.follow(pe({"runtimeTraceLevel": "DEBUG"}))

    def tell(level: str) -> None:
        loop.call_soon_threadsafe(levels.put_nowait, level)

    followed.attach(tell)
    assert await levels.get() == "DEBUG"
    followed.follow(pe({"appTraceLevel": "INFO", "runtimeTraceLevel": "DEBUG"}))
    followed.follow(pe({}))
    assert await levels.get() == "WARN"
    assert levels.empty()


def test_properties_are_the_keys_of_the_secret(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "spark.hadoop.fs.s3a.secret.key").write_text("s3cret\n")
    assert restricted.read(tmp_path) == {"spark.hadoop.fs.s3a.secret.key": "s3cret"}


def test_what_a_registry_is_shown_is_no_setting_of_spark(tmp_path: Path) -> None:
    """Spark's user interface and its events show settings."""
    for key in ("registry-user", "registry-password", "registry-token", "registry-ca.crt"):
        (tmp_path / key).write_text("s3cret")
    (tmp_path / "registry-url").write_text("https://registry")
    (tmp_path / "spark.hadoop.a").write_text("b")
    given = {**ENVIRONMENT, RESTRICTED_PROPERTIES: str(tmp_path)}
    assert restricted_properties(Settings.from_environment(given)) == {"spark.hadoop.a": "b"}


def test_folders_are_optional() -> None:
    assert Settings.from_environment(ENVIRONMENT).profiles is None
    given = {**ENVIRONMENT, RESTRICTED_PROPERTIES: "/r"}
    assert Settings.from_environment(given).restricted_properties == Path("/r")


@pytest.mark.integration
async def test_profiles_are_recorded_and_levels_follow_the_resource(stage: Any) -> None:
    """py-spy and Flight Recorder write their files; Spark's level changes while shards run."""
    profiles = stage.folder / "profiles"
    secret = stage.folder / "secret"
    secret.mkdir()
    (secret / "spark.sql.sources.partitionOverwriteMode").write_text("dynamic")
    recording = f"-XX:StartFlightRecording=filename={profiles}/java.jfr,dumponexit=true"
    stage.environment.update(
        STREAMGRAFT_PROFILES=str(profiles),
        STREAMGRAFT_JAVA_OPTIONS=recording,
        STREAMGRAFT_RESTRICTED_PROPERTIES=str(secret),
    )
    pe = await stage.start(0, [0])
    await pe.running(0)
    assert " DEBUG " not in pe.log.read_text()
    path = PROCESSING_ELEMENT.path(stage.namespace, pe.name)
    await stage.kube.patch(path, {"spec": {"settings": {"runtimeTraceLevel": "DEBUG"}}})
    deadline = time.monotonic() + 60
    while " DEBUG " not in pe.log.read_text():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    assert await pe.terminate() == 0

    profile = json.loads((profiles / f"{pe.name}-1.speedscope.json").read_text())
    assert any("streamgraft_pe_runtime" in frame["file"] for frame in profile["shared"]["frames"])
    assert (profiles / "java.jfr").read_bytes().startswith(b"FLR")


@pytest.mark.integration
async def test_property_that_cannot_be_set_is_named(stage: Any) -> None:
    """A static setting of Spark in the Secret ends the PE with a message that says where to."""
    secret = stage.folder / "secret"
    secret.mkdir()
    (secret / "spark.sql.warehouse.dir").write_text("/tmp/x")
    stage.environment.update(STREAMGRAFT_RESTRICTED_PROPERTIES=str(secret))
    pe = await stage.start(0, [0])
    assert await asyncio.to_thread(pe.process.wait, 240) == 1
    assert (
        "key spark.sql.warehouse.dir of restrictedPropertiesSecret" in (await pe.status()).message
    )
