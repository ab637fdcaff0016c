"""What is computed without starting anything: configuration, ports, certificates, identity."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from streamgraft_local import ClusterSpec, LocalError, graph, pki, ports, resources
from streamgraft_local.components import components, kafka, prometheus
from streamgraft_local.components.all import PORTS, STOP_ORDER
from streamgraft_local.components.model import Setting
from streamgraft_local.errors import tail
from streamgraft_local.kubeconfig import document
from streamgraft_local.paths import DEPLOY
from streamgraft_local.processes import (
    CLUSTER_VARIABLE,
    Process,
    members,
    spawn,
    start_ticks,
    stop,
)
from streamgraft_local.tools import Tools

T = TypeVar("T")


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """A cluster's setting; nothing of it exists."""
    spec = ClusterSpec(base=tmp_path, scrape_seconds=3)
    tools = Tools.model_validate(dict.fromkeys(Tools.model_fields, tmp_path / "tool"))
    return Setting(spec, spec.home, {name: 21000 + i for i, name in enumerate(PORTS)}, tools)


def test_every_component_is_stopped_once(setting: Setting) -> None:
    """Also, each needs only what exists."""
    known = components(setting)
    assert sorted(name for names in STOP_ORDER for name in names) == sorted(known)
    needed = {need for component in known.values() for need in component.needs}
    assert needed <= {*known, "resources"}


def test_prometheus_labels_pods_as_the_contract_says(setting: Setting) -> None:
    """Only running PEs are scraped, on the control port, with the labels of the contracts."""
    pods = prometheus.configuration(setting)["scrape_configs"][0]
    kept = {
        rule["source_labels"][0]: rule["regex"]
        for rule in pods["relabel_configs"]
        if rule["action"] == "keep"
    }
    assert kept == {
        "__meta_kubernetes_pod_labelpresent_streamgraft_io_pe": "true",
        "__meta_kubernetes_pod_phase": "Running",
        "__meta_kubernetes_pod_container_port_number": "10000",
    }
    labels = {rule.get("target_label") for rule in pods["relabel_configs"]} - {None}
    shown = {"namespace", "pod", "streams_job", "region", "channel", "pe", "stage"}
    assert labels == shown | {"__scheme__"}


def test_prometheus_scrapes_at_the_wanted_interval(setting: Setting) -> None:
    """A scrape may not take longer than the interval."""
    configuration = prometheus.configuration(setting)
    assert configuration["global"] == {
        "scrape_interval": "3s",
        "scrape_timeout": "3s",
        "evaluation_interval": "3s",
    }
    assert {job["job_name"] for job in configuration["scrape_configs"]} >= {
        "streamgraft-pe",
        "streamgraft-operator",
        "streamgraft-metrics-adapter",
    }


def test_kafka_listens_on_loopback_only(setting: Setting) -> None:
    """And a misspelt topic is not created."""
    lines = dict(line.split("=", 1) for line in kafka.properties(setting).splitlines())
    assert all("://127.0.0.1:" in part for part in lines["listeners"].split(","))
    assert lines["auto.create.topics.enable"] == "false"
    assert kafka.bootstrap_servers(setting) in lines["advertised.listeners"]


def test_known_ports_stay() -> None:
    """Unless someone else took them."""
    known = {"a": 20001, "b": 20002}
    chosen = ports.choose(["a", "b", "c"], known, free=lambda port: port != 20002)
    assert chosen["a"] == 20001
    assert chosen["b"] != 20002
    assert len(set(chosen.values())) == 3


def test_no_port_is_left() -> None:
    """An error, not an endless search."""
    with pytest.raises(LocalError, match="no free port"):
        ports.choose(["a"], {}, free=lambda port: False)


def test_two_processes_never_draw_the_same_port() -> None:
    """Nothing listens there yet, but the other one is about to."""
    (port,) = ports.choose(["a"], {}).values()
    script = f"from streamgraft_local import ports; print(ports.reserve({port}))"
    asked = [sys.executable, "-c", script]
    assert subprocess.check_output(asked, text=True).strip() == "False"
    other = script.replace(str(port), str(port + 1))
    assert subprocess.check_output([*asked[:2], other], text=True).strip() == "True"


def test_front_proxy_has_an_authority_of_its_own(tmp_path: Path) -> None:
    """A user's certificate can't pass for the front proxy's."""
    pki.ensure(tmp_path / "pki")
    users, proxies = _certificate(tmp_path, "ca"), _certificate(tmp_path, "front-proxy-ca")
    _certificate(tmp_path, "admin").verify_directly_issued_by(users)
    front = _certificate(tmp_path, "front-proxy")
    front.verify_directly_issued_by(proxies)
    with pytest.raises(ValueError, match="does not match"):
        front.verify_directly_issued_by(users)
    assert _common_name(front) == pki.FRONT_PROXY


def test_certificates_are_for_one_purpose(tmp_path: Path) -> None:
    """A server's certificate names its hosts; a client's serves no server."""
    pki.ensure(tmp_path / "pki")
    server = _certificate(tmp_path, "adapter-serving")
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert pki.ADAPTER_HOST in names.get_values_for_type(x509.DNSName)
    usage = _certificate(tmp_path, "operator").extensions.get_extension_for_class(
        x509.ExtendedKeyUsage
    )
    assert list(usage.value) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_etcd_has_an_authority_of_its_own(tmp_path: Path) -> None:
    """Whoever it lets in may write what only the API server checks, so no user of it does."""
    folder = tmp_path / "pki"
    pki.ensure(folder)
    users, backends = _certificate(tmp_path, "ca"), _certificate(tmp_path, "backend-ca")
    for name in ("etcd", "backend-client"):
        certificate = _certificate(tmp_path, name)
        certificate.verify_directly_issued_by(backends)
        with pytest.raises(ValueError, match="does not match"):
            certificate.verify_directly_issued_by(users)
    for file in folder.glob("backend-*"):
        file.unlink()
    pki.ensure(folder)  # as an earlier release made it
    assert (folder / "backend-client.key").exists()


def test_keys_are_made_once_and_private(tmp_path: Path) -> None:
    """A second call changes nothing; nobody else can read a key."""
    folder = tmp_path / "pki"
    pki.ensure(folder)
    before = (folder / "ca.key").read_bytes()
    pki.ensure(folder)
    assert (folder / "ca.key").read_bytes() == before
    assert {file.stat().st_mode & 0o077 for file in folder.glob("*.key")} == {0}


def test_kubeconfig_carries_its_keys(tmp_path: Path) -> None:
    """It can be copied elsewhere."""
    pki.ensure(tmp_path / "pki")
    config = document("c", "https://127.0.0.1:1", tmp_path / "pki", "admin")
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert config["contexts"][0]["context"] == {"cluster": "c", "user": "admin"}


def test_adapter_is_verified_by_the_api_server() -> None:
    """Port and authority are filled in; verification is never switched off."""
    items = resources.documents(DEPLOY / "manifests" / resources.CUSTOM_METRICS)
    filled = resources.served_at(items, 21009, b"PEM")
    services = [item["spec"] for item in filled if item["kind"] == "APIService"]
    assert [(spec["group"].partition(".")[0], spec["version"]) for spec in services] == [
        ("custom", "v1beta1"),
        ("custom", "v1beta2"),
        ("external", "v1beta1"),
    ]
    assert {spec["service"]["port"] for spec in services} == {21009}
    assert {spec["caBundle"] for spec in services} == {"UEVN"}
    assert not any("insecureSkipTLSVerify" in spec for spec in services)


def test_command_with_parentheses_does_not_confuse() -> None:
    """proc(5): the second field is the file name, whatever is in it."""
    rest = " ".join(["S", "7", *["0"] * 17, "4711", "0"])
    assert start_ticks(f"12 (a) b (c) {rest}") == ("S", 7, 4711)


def test_reused_pid_is_another_process() -> None:
    """The same pid with another start time is not the one recorded, and is never signalled."""
    own = Process.of(os.getpid())
    assert own is not None
    assert own.alive()
    assert not Process(own.pid, own.start_ticks + 1, own.boot).alive()
    assert not Process(own.pid, own.start_ticks, "another boot").alive()


def test_record_that_is_no_record(tmp_path: Path) -> None:
    """A torn file counts as none."""
    (tmp_path / "x.json").write_text('{"pid": 1')
    assert Process.load(tmp_path / "x.json") is None


def test_members_are_found_by_their_mark_and_ended(tmp_path: Path) -> None:
    """Children that lost their parent carry the mark too."""
    mark = f"test-{os.getpid()}"
    script = "import subprocess, sys; subprocess.Popen(['sleep', '600'])"
    spawn(
        [sys.executable, "-c", script],
        tmp_path / "log",
        {**os.environ, CLUSTER_VARIABLE: mark},
        tmp_path / "record.json",
    )
    found = eventually(lambda: [p for p in members(mark) if p.command() == "sleep 600"])
    stop(found, grace_seconds=5)
    assert [process for process in found if process.alive()] == []


def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After its grace period."""
    process = spawn(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"],
        tmp_path / "log",
        dict(os.environ),
        tmp_path / "record.json",
    )
    eventually(lambda: "ready" in tail(tmp_path / "log"))
    stop([process], grace_seconds=0.2)
    assert not process.alive()


def test_missing_program(tmp_path: Path) -> None:
    """An error that names it."""
    with pytest.raises(FileNotFoundError):
        spawn(["/no/such/program"], tmp_path / "log", {}, tmp_path / "record.json")


def test_tail_of_a_log(tmp_path: Path) -> None:
    """The last lines only; none if there is no log."""
    log = tmp_path / "log"
    log.write_text("\n".join(str(number) for number in range(100)))
    assert tail(log, lines=2) == "98\n99"
    assert tail(tmp_path / "absent") == ""


def test_steps_wait_for_what_they_need() -> None:
    """The order of needs holds."""
    order: list[str] = []
    graph.run_all(
        {
            "last": graph.Task(lambda: order.append("last"), ("middle",)),
            "middle": graph.Task(lambda: order.append("middle"), ("first",)),
            "first": graph.Task(lambda: order.append("first")),
        }
    )
    assert order == ["first", "middle", "last"]


def test_failure_stops_what_needs_it() -> None:
    """The error comes out; what needs the failed step never runs."""
    order: list[str] = []

    def fail() -> None:
        raise subprocess.CalledProcessError(1, "x")

    tasks = {"a": graph.Task(fail), "b": graph.Task(lambda: order.append("b"), ("a",))}
    with pytest.raises(subprocess.CalledProcessError):
        graph.run_all(tasks)
    assert order == []


def test_circle_is_an_error() -> None:
    """Instead of waiting for ever."""
    tasks = {"a": graph.Task(print, ("b",)), "b": graph.Task(print, ("a",))}
    with pytest.raises(ValueError, match="circle"):
        graph.run_all(tasks)


def eventually(condition: Callable[[], T]) -> T:
    """Return what the condition gives once that is true."""
    deadline = time.monotonic() + 30
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.02)
    return value


def _certificate(base: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((base / "pki" / f"{name}.crt").read_bytes())


def _common_name(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
