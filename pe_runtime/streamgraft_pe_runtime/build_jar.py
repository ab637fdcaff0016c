"""Compile our Scala sources into a jar: `python -m streamgraft_pe_runtime.build_jar`.

What must live in the driver's JVM and is too much for Janino is in `scala/`, a folder for each
part. Spark brings the compiler; the classes are valid for one version of Spark and of its Kafka
connector (STREAMGRAFT_JARS), whose internals they use.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from streamgraft_common.spark_jvm import JvmSettings, spark_home

SOURCES = Path(__file__).parent / "scala"
_OLDEST_JAVA = "17"


class NotCompiled(Exception):
    """The sources have an error; the message has the compiler's words."""


def main() -> None:
    """Build the jar."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jar", type=Path, required=True, help="file to write")
    arguments = parser.parse_args()
    try:
        build(arguments.jar, JvmSettings.from_environment())
    except NotCompiled as error:
        sys.exit(str(error))


def build(jar: Path, settings: JvmSettings) -> None:
    """Write the jar. Raises NotCompiled."""
    sources = sorted(SOURCES.rglob("*.scala"))
    with tempfile.TemporaryDirectory(prefix="streamgraft-scala-") as folder:
        command = [
            *(settings.java, "-Xss8m", "-Xmx500m", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{spark_home() / 'jars'}/*", "scala.tools.nsc.Main"),
            *("-release", _OLDEST_JAVA, "-deprecation", "-Xfatal-warnings"),
            *("-cp", settings.class_path(), "-d", folder),
            *map(str, sources),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotCompiled(f"the Scala sources don't compile:\n{done.stdout}{done.stderr}")
        roots = [Path(folder), *sorted(item for item in SOURCES.iterdir() if item.is_dir())]
        files = [(file, root) for root in roots for file in sorted(root.rglob("*"))]
        _write(
            jar,
            {
                str(file.relative_to(root)): file.read_bytes()
                for file, root in files
                if file.is_file() and file.suffix != ".scala"
            },
        )


def _write(jar: Path, entries: dict[str, bytes]) -> None:
    """Write a jar that depends on its entries only, so that equal sources give equal jars."""
    partial = jar.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    partial.rename(jar)


if __name__ == "__main__":
    main()
