"""The programs and jars that a cluster runs: found, else built or fetched into the cache."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from streamgraft_local import graph
from streamgraft_local.paths import DEPLOY, cache_folder
from streamgraft_local.progress import Report
from streamgraft_local.toolchain import (
    class_archive,
    driver_jars,
    golang,
    jars,
    java,
    prometheus,
)
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.tools import Tools

__all__ = ["CONTROL_PLANE", "Tools", "any_java", "prepare"]

CONTROL_PLANE = golang.Module(
    "controlplane",
    DEPLOY / "controlplane",
    link="-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3",
    note="etcd and Kubernetes from Go modules; about 7 minutes on two cores",
)


def any_java(report: Report) -> Path:
    """Return the machine's own Java, or else one of the cache. Raises ToolError."""
    return java.find(Cache(cache_folder(), report))


def prepare(report: Report) -> Tools:
    """Return all tools, making what is missing. Raises ToolError."""
    cache = Cache(cache_folder(), report)
    found: dict[str, Path | None] = {}

    def tool(name: str) -> Path:
        path = found[name]
        assert path is not None, name
        return path

    def task(name: str, find: Callable[[], Path | None], *needs: str) -> tuple[str, graph.Task]:
        def run() -> None:
            found[name] = find()

        return name, graph.Task(run, needs)

    def kafka() -> Path:
        note = "the Kafka broker's jars; about 40 s"
        return jars.fetch(cache, tool("java"), "kafka", jars.BROKER, transitive=True, note=note)

    def driver() -> Path:
        return driver_jars.make(cache, tool("java"))

    def archive() -> Path | None:
        return class_archive.make(cache, tool("java"), tool("driver_jars"))

    graph.run_all(
        dict(
            [
                task("java", partial(java.find, cache)),
                task("controlplane", partial(golang.build, cache, CONTROL_PLANE)),
                # One Go build after the other: each takes all cores.
                task("prometheus", partial(prometheus.find, cache), "controlplane"),
                task("kafka_jars", kafka, "java"),
                task("driver_jars", driver, "java"),
                task("cds_archive", archive, "driver_jars"),
            ]
        )
    )
    return Tools.model_validate(found)
