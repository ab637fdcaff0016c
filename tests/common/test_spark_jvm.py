"""The driver's JVM: where it may leave files, and how it ends."""

import os
import select
from pathlib import Path

import pytest

from streamgraft_common.spark_jvm import JvmSettings, SparkJvm


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A named pipe, to which a `java` beside it writes its arguments."""
    pipe = tmp_path / "words"
    os.mkfifo(pipe)
    return pipe


def launched(words: Path, then: str) -> tuple[SparkJvm, Path]:
    """Start a `java` that does something after it was launched; return it and its folder."""
    java = words.with_name("java")
    java.write_text(f'#!/bin/sh\nfor word; do echo "$word"; done > {words}\n{then}\n')
    java.chmod(0o755)
    jvm = SparkJvm.start({}, JvmSettings(java=str(java)))
    lines = words.read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines if line.startswith("-D"))
    folder = Path(found["-Djava.io.tmpdir"])
    assert folder.name.startswith("streamgraft-jvm-")
    assert found["-Dspark.local.dir"] == str(folder)
    assert folder.exists()
    return jvm, folder


def test_all_temporary_files_of_the_jvm_lie_in_a_folder_that_goes_with_it(words: Path) -> None:
    jvm, folder = launched(words, "exit 0")
    jvm.stop()
    assert not folder.exists()


def test_killed_jvm_is_gone_with_its_folder(words: Path) -> None:
    jvm, folder = launched(words, "exec sleep 600")
    assert jvm.alive
    jvm.kill()
    assert not jvm.alive
    assert not folder.exists()


def test_workers_of_a_killed_jvm_are_killed_as_well(words: Path) -> None:
    held = words.with_name("held")
    os.mkfifo(held)
    jvm, folder = launched(words, f"sleep 600 > {held} & wait")
    with held.open("rb") as worker:  # at its end once nobody has it open for writing
        assert not select.select([worker], [], [], 0)[0]
        jvm.kill()
        assert select.select([worker], [], [], 10)[0]
    assert not folder.exists()


def test_jvm_that_does_not_stop_in_time_is_killed(words: Path) -> None:
    jvm, folder = launched(words, "exec sleep 600")
    jvm.stop(timeout_seconds=0.01)
    assert not jvm.alive
    assert not folder.exists()
