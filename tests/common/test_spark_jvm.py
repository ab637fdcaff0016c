"""The driver's JVM: where it may leave files."""

from pathlib import Path

from streamgraft_common.spark_jvm import JvmSettings, SparkJvm


def test_all_temporary_files_of_the_jvm_lie_in_a_folder_that_goes_with_it(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(f'#!/bin/sh\nfor word; do echo "$word"; done > {tmp_path}/words\n')
    java.chmod(0o755)
    jvm = SparkJvm.start({}, JvmSettings(java=str(java)))
    jvm.stop()
    words = (tmp_path / "words").read_text().splitlines()
    found = dict(word.split("=", 1) for word in words if word.startswith("-D"))
    folder = found["-Djava.io.tmpdir"]
    assert Path(folder).name.startswith("streamgraft-jvm-")
    assert found["-Dspark.local.dir"] == folder
    assert not Path(folder).exists()
