"""`python -m streamgraft_pe_runtime`: what the container of a PE runs."""

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from streamgraft_common.bundle import BundleError
from streamgraft_common.spark_jvm import JvmFailed, SparkJvm
from streamgraft_pe_runtime.application import Code
from streamgraft_pe_runtime.conf import spark_conf
from streamgraft_pe_runtime.kafka_access import jvm_properties
from streamgraft_pe_runtime.profiling import recording
from streamgraft_pe_runtime.settings import Settings

log = logging.getLogger("streamgraft_pe_runtime")


def main() -> int:
    """Run the PE that names this pod; returns the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-bundle-"))
    jvm: SparkJvm | None = None
    try:
        settings = Settings.from_environment(os.environ)
        code = Code.unpack(settings.bundle.read_bytes(), folder)
        with recording(settings.profiles, settings.pod):
            # For the application, also in Python's workers: they come from the JVM.
            os.environ["STREAMGRAFT_DRIVER_PID"] = str(os.getpid())
            conf = spark_conf(settings.pod, settings.slots, settings.spark_conf)
            jvm = SparkJvm.start({**conf, **jvm_properties()})
            # Only now what imports PySpark: the JVM starts meanwhile.
            from streamgraft_pe_runtime.pe import run

            return asyncio.run(run(settings, code, jvm))
    except (BundleError, JvmFailed) as error:
        log.error("%s", error)
        return 1
    finally:
        if jvm is not None:
            _end(jvm, recorded=settings.profiles is not None)
        shutil.rmtree(folder, ignore_errors=True)


def _end(jvm: SparkJvm, *, recorded: bool) -> None:
    """End the JVM, in which nothing runs any more."""
    if recorded:
        jvm.stop(timeout_seconds=3)  # the recording is written at an orderly end
    else:
        # An orderly end would take CPU from the PEs that have just taken over what ran here.
        jvm.kill()


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    sys.stdout.flush()
    # All is stopped and written. What may still wait are threads in calls to Kafka and Spark, for
    # brokers that are away: they must not keep the pod.
    os._exit(code)
