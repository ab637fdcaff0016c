"""What containers use: measured from real processes, and computed from readings."""

import subprocess
import sys
from pathlib import Path

from streamgraft_local.node.meter import Meter
from streamgraft_local.node.metrics_api import node_metrics, pod_metrics
from streamgraft_local.node.process import MARKER, marker
from streamgraft_local.node.usage import Reading, Usage, read_containers, read_machine, usage

MEBIBYTE = 1024**2
WORK = """
import subprocess, sys
held = bytearray(b"x") * (64 << 20)
subprocess.run([sys.executable, "-c", "while __import__('time').process_time() < 0.5: pass"])
print("worked", flush=True)
sys.stdin.read()
"""


def test_children_that_ended_and_memory_count(tmp_path: Path) -> None:
    """A child's CPU time goes on counting; another container's processes do not count."""
    environment = {MARKER: marker(tmp_path / "a"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", WORK]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"worked\n"
        runs = {marker(tmp_path / "a"): "run-1", marker(tmp_path / "ab"): "run-2"}
        found = read_containers(tmp_path, runs)
        process.stdin.close()
    assert found.keys() == {marker(tmp_path / "a")}
    reading = found[marker(tmp_path / "a")]
    assert reading.run == "run-1"
    assert 0.5 <= reading.cpu_seconds < 5
    assert 64 * MEBIBYTE < reading.memory_bytes < 128 * MEBIBYTE


def test_the_machine_uses_at_least_what_we_do() -> None:
    now = read_machine()
    assert now.cpu_seconds > 0
    assert now.memory_bytes > 64 * MEBIBYTE


def test_usage_is_that_between_two_readings_of_one_run() -> None:
    first = Reading("run-1", 100.0, 3.0, 10 * MEBIBYTE)
    second = Reading("run-1", 110.0, 8.0, 20 * MEBIBYTE)
    assert usage(first, second) == Usage(110.0, 10.0, 0.5, 20 * MEBIBYTE)
    assert usage(None, second) is None
    assert usage(Reading("run-0", 100.0, 3.0, 1), second) is None


def test_time_of_processes_that_nobody_waited_for_is_no_negative_usage() -> None:
    found = usage(Reading("r", 100.0, 3.0, 1), Reading("r", 110.0, 2.0, 1))
    assert found is not None
    assert found.cores == 0.0


def test_a_container_is_known_after_two_readings_and_until_it_has_ended(tmp_path: Path) -> None:
    meter = Meter(tmp_path, dict)
    meter.note({"a/": Reading("1", 100.0, 1.0, MEBIBYTE)})
    assert meter.container("a/") is None
    meter.note({"a/": Reading("1", 110.0, 2.0, MEBIBYTE)})
    assert meter.container("a/") == Usage(110.0, 10.0, 0.1, MEBIBYTE)
    meter.note({"a/": Reading("2", 120.0, 0.5, MEBIBYTE)})  # it was restarted
    assert meter.container("a/") is None
    meter.note({})
    meter.note({"a/": Reading("2", 140.0, 1.0, MEBIBYTE)})
    assert meter.container("a/") is None


def test_objects_are_those_of_metrics_server() -> None:
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"l": "v"}}}
    used = Usage(1.5, 10.0, 0.1234567891, 3 * MEBIBYTE)
    found = pod_metrics(pod, {"main": used})
    assert found is not None
    assert found["metadata"].pop("creationTimestamp")
    assert found == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "p", "namespace": "n", "labels": {"l": "v"}},
        "timestamp": "1970-01-01T00:00:01Z",
        "window": "10.000s",
        "containers": [{"name": "main", "usage": {"cpu": "123456789n", "memory": "3072Ki"}}],
    }
    assert pod_metrics(pod, {}) is None
    assert node_metrics({"metadata": {"name": "n"}}, None) is None
