"""Jars from Maven repositories, by the Ivy that Spark carries: no Maven needed."""

import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from streamgraft_local.errors import ToolError
from streamgraft_local.toolchain import trust
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run

REPOSITORY = "https://repo1.maven.org/maven2/"
SPARK = "4.2.0"
KAFKA = "4.1.1"


@dataclass(frozen=True)
class Jar:
    """Coordinates of a jar."""

    organization: str
    name: str
    revision: str


BROKER = (
    Jar("org.apache.kafka", "kafka_2.13", KAFKA),
    # Without it slf4j says nothing at all.
    Jar("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)
"""The broker, with everything that it needs."""

CONNECTOR = (
    Jar("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK),
    # Of another version than the rest: not every mirror has 4.2.0, and nothing of it is used
    # without delegation tokens.
    Jar("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Jar("org.apache.kafka", "kafka-clients", "3.9.1"),
    Jar("org.apache.commons", "commons-pool2", "2.12.1"),
)
"""Spark's Kafka connector, without what is among Spark's own jars."""


def ivy_module(jars: Sequence[Jar], *, transitive: bool) -> str:
    """Return the ivy.xml that asks for the jars."""
    root = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(root, "info", organisation="streamgraft.io", module="jars")
    dependencies = ElementTree.SubElement(root, "dependencies")
    for jar in jars:
        ElementTree.SubElement(
            dependencies,
            "dependency",
            org=jar.organization,
            name=jar.name,
            rev=jar.revision,
            conf="default->default",
            transitive=str(transitive).lower(),
        )
    return ElementTree.tostring(root, encoding="unicode")


def ivy_settings(work: Path) -> str:
    """Return Ivy's settings: one repository, and a cache that is thrown away."""
    root = ElementTree.Element("ivysettings")
    ElementTree.SubElement(root, "settings", defaultResolver="central")
    ElementTree.SubElement(root, "caches", defaultCacheDir=str(work / "cache"))
    resolvers = ElementTree.SubElement(root, "resolvers")
    ElementTree.SubElement(
        resolvers, "ibiblio", name="central", m2compatible="true", root=REPOSITORY
    )
    return ElementTree.tostring(root, encoding="unicode")


def fetch(
    cache: Cache, java: Path, kind: str, jars: Sequence[Jar], *, transitive: bool, note: str
) -> Path:
    """Return a folder with the jars (and all that they need, if transitive)."""
    module = ivy_module(jars, transitive=transitive)

    def make(folder: Path) -> None:
        work = folder / "ivy"
        work.mkdir()
        (work / "ivy.xml").write_text(module)
        (work / "settings.xml").write_text(ivy_settings(work))
        pattern = f"{folder}/jars/[artifact]-[revision](-[classifier]).[ext]"
        ivy = (
            str(java),
            *trust.java_options(work),
            "-cp",
            str(_ivy_jar()),
            "org.apache.ivy.Main",
            "-warn",
        )
        files = ("-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"))
        arguments = (*files, "-confs", "default", "-types", "jar", "bundle", "-retrieve", pattern)
        run(f"fetching the jars of {kind}", (*ivy, *arguments))
        shutil.rmtree(work)

    return cache.get(kind, key_of(module), make, note) / "jars"


def _ivy_jar() -> Path:
    specification = importlib.util.find_spec("pyspark")
    if specification is None or specification.origin is None:
        raise ToolError("pyspark is not installed: its jars hold Ivy")
    found = sorted((Path(specification.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise ToolError("there is no Ivy among pyspark's jars")
    return found[0]
