"""Stand-ins for the images of Kafka and Prometheus, which no registry gives here.

They hold the real programs where the chart looks for them: Kafka's jars of the version that the
chart names with scripts of the names that its distribution has, and our build of Prometheus.
"""

import shutil
from pathlib import Path

from tests.node import image, oci

from streamgraft_local.progress import Report
from streamgraft_local.tools import Tools

KAFKA, PROMETHEUS = "localhost/kafka:test", "localhost/prometheus:test"
_SCRIPTS = {"kafka-storage.sh": "kafka.tools.StorageTool", "kafka-server-start.sh": "kafka.Kafka"}


def kafka(report: Report, tools: Tools, work: Path) -> Path:
    """Return the archive of a broker's image, written to `work`."""
    home = work / "kafka-image"
    shutil.copytree(tools.kafka_jars, home / "libs")
    (home / "bin").mkdir()
    for name, program in _SCRIPTS.items():
        script = home / "bin" / name
        script.write_text(
            f'#!/bin/sh\nexec java $KAFKA_HEAP_OPTS -cp "/opt/kafka/libs/*" {program} "$@"\n'
        )
        script.chmod(0o755)
    layer, archive = work / "kafka.layer", work / "kafka.tar"
    oci.pack(home, layer, "opt/kafka")
    oci.write(archive, oci.Image(KAFKA, [image.base(report).tar, layer]))
    return archive


def prometheus(tools: Tools, work: Path) -> Path:
    """Return the archive of Prometheus' image, written to `work`."""
    root = work / "prometheus-image"
    (root / "bin").mkdir(parents=True)
    shutil.copy2(tools.prometheus, root / "bin" / "prometheus")
    layer, archive = work / "prometheus.layer", work / "prometheus.tar"
    oci.pack(root, layer)
    oci.write(archive, oci.Image(PROMETHEUS, [layer]))
    return archive
