"""Make the AppCDS archive of a PE's driver: `python -m streamgraft_pe_runtime.train_cds`.

The archive holds the classes that a driver loads, parsed and verified, and so halves its start. It
is valid for one JVM and one class path: train it in the image (same STREAMGRAFT_JAVA and
STREAMGRAFT_JARS) in which the PEs run.
"""

import argparse
import os
import shlex
import time
from dataclasses import replace
from pathlib import Path

from streamgraft_common.adl import Adl, Operator, Stream
from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_common.spark_jvm import JvmSettings, SparkJvm
from streamgraft_pe_runtime.conf import spark_conf

_NOWHERE = "127.0.0.1:1"
_FIELDS = {"a": "string", "b": "double", "t": "timestamp"}


def main() -> None:
    """Run a small application through a driver that writes the archive when it ends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--archive", type=Path, required=True, help="file to write")
    parser.add_argument("--bootstrap-servers", help="a broker, to also train reading from Kafka")
    arguments = parser.parse_args()
    began = time.monotonic()
    train(arguments.archive, arguments.bootstrap_servers)
    size = arguments.archive.stat().st_size / 2**20
    print(f"{arguments.archive}: {size:.0f} MB in {time.monotonic() - began:.0f} s")


def train(archive: Path, bootstrap_servers: str | None = None) -> None:
    """Write the archive. Without a broker the classes that read a topic are not in it."""
    partial = archive.with_suffix(f".{os.getpid()}")
    options = f"-XX:ArchiveClassesAtExit={shlex.quote(str(partial))} -Xlog:cds*=off"
    settings = replace(JvmSettings.from_environment(), cds_archive=None, options=options)
    metadata = _metadata(bootstrap_servers)
    jvm = SparkJvm.start(spark_conf("training", 1, {}), settings)
    from streamgraft_pe_runtime.plan import Compiler
    from streamgraft_pe_runtime.warm_up import warm_up

    session = jvm.attach()
    for stateful in (False, True):
        compiler = Compiler(_Trainer(stateful), _ADL, metadata)
        warm_up(session, compiler, metadata, _ADL, kafka=bootstrap_servers is not None)
    jvm.stop(timeout_seconds=300)
    partial.rename(archive)


class _Trainer:
    """An application with what most have: columns, a Python function, an aggregate."""

    def __init__(self, stateful: bool) -> None:
        self.functions = {"work": self._counted if stateful else self._changed}

    def bind(self, parameters: object) -> None:
        """There are none."""

    @staticmethod
    def _changed(frame: object) -> object:
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        assert isinstance(frame, DataFrame)
        upper = F.udf(str.upper)
        return frame.withColumn("a", upper("a")).where("b > 0").selectExpr("a", "b * 2 as b", "t")

    @staticmethod
    def _counted(frame: object) -> object:
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        assert isinstance(frame, DataFrame)
        return frame.groupBy("a").agg(F.avg("b").alias("b"), F.max("t").alias("t"))


def _schema(fields: dict[str, str]) -> dict[str, object]:
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in fields.items()
        ],
    }


_ADL = Adl(
    name="training",
    built_by="",
    module="",
    application="",
    operators=[
        Operator(name="work", kind="function", inputs=["in"], outputs=["out"], output_mode="update")
    ],
    streams=[
        Stream(name="in", producer="outside", schema=_schema(_FIELDS)),
        Stream(name="out", producer="work", schema=_schema(_FIELDS)),
    ],
)


def _metadata(bootstrap_servers: str | None) -> PeMetadata:
    """Describe the trainer's PE: its input is read only if there is a broker."""
    servers = bootstrap_servers or _NOWHERE
    topic = "streamgraft.training"
    source = InputPort(
        port=0, stream="in", topic=topic, partitions=1, bootstrap_servers=servers, operator="work"
    )
    sink = OutputPort(
        port=1,
        stream="out",
        topic=topic,
        partitions=1,
        bootstrap_servers=servers,
        key=["a"],
        operator="work",
    )
    return PeMetadata(
        namespace="",
        job="training",
        pe_id=0,
        stage_name="training",
        operators=["work"],
        inputs=[source],
        outputs=[sink],
        checkpoint_path="",
        trigger_seconds=1.0,
        bundle_digest="",
    )


if __name__ == "__main__":
    main()
