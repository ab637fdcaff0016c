"""Imports and Exports: what the operator writes into them."""

from typing import Any

from streamgraft_common.adl import Adl, Operator, Stream
from streamgraft_common.kube.client import Object
from streamgraft_common.names import export_topic
from streamgraft_common.resources import ExportSpec, ImportSpec
from streamgraft_operator.graph import JobContext, topology_of
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.manifests.shared_streams import shared_streams

OPERATORS: list[dict[str, Any]] = [
    {"name": "src", "kind": "kafka-source", "outputs": ["raw"], "kafka": {"topic": "in"}},
    {
        "name": "out",
        "kind": "export",
        "inputs": ["raw"],
        "exported": {"name": "clicks", "properties": {"level": 3}, "namespaces": ["other"]},
    },
    {
        "name": "shared",
        "kind": "import",
        "outputs": ["wanted"],
        "imported": {"subscription": "level > 1", "filter": "n > 0", "fromJob": "ingest"},
    },
    {"name": "keep", "kind": "kafka-sink", "inputs": ["wanted"], "kafka": {"topic": "kept"}},
]


def written(**job: Any) -> dict[str, Object]:
    """Return the manifests of a job that exports and imports, by name."""
    adl = Adl(
        name="app",
        built_by="0",
        module="app",
        application="app",
        operators=[Operator.model_validate(item) for item in OPERATORS],
        streams=[
            Stream(name=name, producer=producer, schema={"type": "struct", "fields": []})
            for name, producer in (("raw", "src"), ("wanted", "shared"))
        ],
    )
    topology = topology_of(adl, JobContext("ns", "job", "uid", "digest", "b:1", **job), {})
    found = shared_streams(Owner("ns", "job", "uid", 1), adl, topology)
    return {item.manifest["metadata"]["name"]: item.manifest for item in found}


def test_they_say_whose_stream_it_is_and_where() -> None:
    """Beside what the application declares: job, operator, stream, topic, brokers and schema."""
    manifests = written(tls=True)
    assert manifests.keys() == {"job-out", "job-shared"}
    assert ExportSpec.model_validate(manifests["job-out"]["spec"]) == ExportSpec(
        job="job",
        operator="out",
        stream="raw",
        name="clicks",
        properties={"level": 3},
        namespaces=["other"],
        topic=export_topic("ns", "job", "uid", "out"),
        bootstrap_servers="b:1",
        tls=True,
        schema='{"fields": [], "type": "struct"}',
    )
    assert ImportSpec.model_validate(manifests["job-shared"]["spec"]) == ImportSpec(
        job="job",
        operator="shared",
        from_job="ingest",
        subscription="level > 1",
        filter="n > 0",
        bootstrap_servers="b:1",
        tls=True,
        schema='{"fields": [], "type": "struct"}',
    )
