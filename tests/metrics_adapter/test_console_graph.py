"""A job as the console draws it."""

from typing import Any

from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_common.resources import JOB
from streamgraft_metrics_adapter.api.console.graph import first_of_stages, job_view, streams


def stage(name: str, inputs: dict[str, bool], outputs: dict[str, bool]) -> PeMetadata:
    """Return a PE with ports by topic; true: outside."""

    def common(topic: str, external: bool) -> dict[str, Any]:
        place = {"port": 0, "stream": topic, "topic": topic, "partitions": None}
        return {**place, "bootstrap_servers": "b:1", "external": external, "operator": name}

    return PeMetadata(
        namespace="n",
        job="j",
        pe_id=0,
        stage_name=name,
        operators=[name],
        inputs=[InputPort(**common(*item)) for item in inputs.items()],
        outputs=[OutputPort(**common(*item)) for item in outputs.items()],
        checkpoint_path="p",
        trigger_seconds=1.0,
        bundle_digest="d",
    )


def element(number: int, name: str) -> dict[str, Any]:
    """Return a PE that holds two shards."""
    shards = {
        str(i): {"state": "Running", "epoch": 1, "busy": busy, "lag": 5}
        for i, busy in enumerate((0.2, 0.7))
    }
    return {
        "metadata": {"name": f"j-{number}", "namespace": "n"},
        "spec": {"job": "j", "peId": number, "stageName": name},
        "status": {"phase": "Running", "launchCount": 2, "runtime": {"shards": shards}},
    }


def test_streams_begin_and_end_outside() -> None:
    """A topic that one stage writes and two read is two streams."""
    found = streams(
        [
            stage("a", {"in": True}, {"x": False}),
            stage("b", {"x": False}, {"out": True}),
            stage("c", {"x": False}, {}),
        ]
    )
    assert {(item["from"], item["to"], item["topic"]) for item in found} == {
        (None, "a", "in"),
        ("a", "b", "x"),
        ("a", "c", "x"),
        ("b", None, "out"),
    }


def test_a_job_with_its_stages() -> None:
    """PEs by id; of a stage whose metadata nobody may read, its name."""
    meta = {"namespace": "n", "name": "j", "creationTimestamp": "2026-01-01T00:00:00Z"}
    job = {**JOB.manifest("j", "n", {"bundle": {"file": "/x"}}), "metadata": meta}
    elements = [element(10, "b"), element(2, "b"), element(0, "a")]
    seen = job_view(job, [], elements, {"a": stage("a", {}, {})})
    assert [(s["name"], s["operators"], [pe["id"] for pe in s["pes"]]) for s in seen["stages"]] == [
        ("a", ["a"], [0]),
        ("b", [], [2, 10]),
    ]
    pe = seen["stages"][0]["pes"][0]
    assert (pe["busy"], pe["lag"], pe["shards"], pe["launches"]) == (0.7, 10, [0, 1], 2)
    assert seen["phase"] == "Pending"
    assert first_of_stages(elements) == {"a": elements[2], "b": elements[1]}
