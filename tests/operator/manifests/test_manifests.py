"""Manifests: what docs/develop/contracts.md promises of pods, ConfigMaps, Services and regions."""

import json
from dataclasses import replace
from typing import Any

import pytest

from streamgraft_common.adl import (
    Autoscaling,
    ConsistentRegion,
    Region,
)
from streamgraft_common.declared_objects import HostPoolDeclaration, ServiceDeclaration
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.port_labels import PortLabel
from streamgraft_common.resources import ConsistentRegionSpec, JobSpec
from streamgraft_operator import manifests
from streamgraft_operator.graph import (
    PlannedPe,
    PlannedRegion,
    Topology,
    graph_content,
)
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.settings import Settings

OWNER = Owner(namespace="ns", name="flights", uid="u1", generation_id=3)
SETTINGS = Settings(
    bootstrap_servers="kafka:9092",
    checkpoint_volume={"persistentVolumeClaim": {"claimName": "checkpoints"}},
    image="streamgraft/pe:1",
)
IN_CONFIG_MAP = {"bundle": {"configMap": {"name": "flights-bundle"}}}


def planned(bundle_digest: str = "d", **place: Any) -> PlannedPe:
    """Return PE 4: channel 2, stage 0 of region delays."""
    metadata = PeMetadata(
        namespace="ns",
        job="flights",
        pe_id=4,
        stage_name="delays",
        operators=["sum"],
        inputs=[],
        outputs=[],
        checkpoint_path="ns/flights-u1/delays",
        trigger_seconds=1.0,
        bundle_digest=bundle_digest,
    )
    where: dict[str, Any] = {"region": "delays", "channel": 2, "stage": 0, **place}
    return PlannedPe(
        name="flights-4",
        pe_id=4,
        stage_name="delays",
        metadata=metadata,
        content=graph_content(metadata),
        **where,
    )


def pod(
    spec: dict[str, Any],
    own: dict[str, Any] | None = None,
    settings: Settings = SETTINGS,
    **place: Any,
) -> dict[str, Any]:
    """Return the pod of launch 7 of the PE; `own`: settings of this PE only."""
    job = JobSpec.model_validate(spec)
    item = manifests.processing_element(OWNER, job, planned(**place), "content", [1, 0], 5)
    item["spec"]["settings"] = own or {}
    item["metadata"]["uid"] = "pe-uid"
    item["status"] = {"launchCount": 7}
    return manifests.pod(item, OWNER, job, settings, None)


def environment(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the environment of the pod's container; downward fields as their path."""
    entries = manifest["spec"]["containers"][0]["env"]
    return {
        entry["name"]: entry.get("value", entry.get("valueFrom", {}).get("fieldRef"))
        for entry in entries
    }


def test_pod_says_who_it_is() -> None:
    metadata = pod(IN_CONFIG_MAP)["metadata"]
    assert metadata["name"] == "flights-4-7"
    assert metadata["labels"] == {
        "streamgraft.io/job": "flights",
        "streamgraft.io/generation": "3",
        "streamgraft.io/pe": "flights-4",
        "streamgraft.io/region": "delays",
        "streamgraft.io/channel": "2",
        "streamgraft.io/stage": "0",
        "streamgraft.io/stage-name": "delays",
        "streamgraft.io/launch": "7",
    }
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["u1"]


def test_what_a_pe_wrote_last_is_told_when_it_fails() -> None:
    (container,) = pod(IN_CONFIG_MAP)["spec"]["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_pod_outside_of_regions_has_no_place_in_one() -> None:
    labels = pod(IN_CONFIG_MAP, region=None, channel=None)["metadata"]["labels"]
    assert not {label for label in labels if "region" in label or "channel" in label}


def test_container_gets_the_environment_of_the_contract() -> None:
    assert environment(pod(IN_CONFIG_MAP)) == {
        "STREAMGRAFT_NAMESPACE": "ns",
        "STREAMGRAFT_JOB": "flights",
        "STREAMGRAFT_POD": "flights-4-7",
        "STREAMGRAFT_POD_UID": {"fieldPath": "metadata.uid"},
        "STREAMGRAFT_BIND_ADDRESS": {"fieldPath": "status.podIP"},
        "STREAMGRAFT_BUNDLE": "/etc/streamgraft/bundle/bundle.zip",
        "STREAMGRAFT_CHECKPOINT_ROOT": "/var/lib/streamgraft/checkpoints",
        "STREAMGRAFT_DATA_PATH": "/var/lib/streamgraft/data",
        "STREAMGRAFT_HEAP_MB": "400",
        "STREAMGRAFT_JAVA_OPTIONS": "",
        "STREAMGRAFT_SLOTS": "1",
        "STREAMGRAFT_SPARK_CONF": "{}",
    }


def test_mounts_have_volumes() -> None:
    spec = pod(IN_CONFIG_MAP)["spec"]
    volumes = {volume.pop("name"): volume for volume in spec["volumes"]}
    assert volumes == {
        "bundle": {"configMap": {"name": "flights-bundle"}},
        "checkpoints": SETTINGS.checkpoint_volume,
        "data": {"emptyDir": {}},
    }
    mounts = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts == volumes.keys()


@pytest.mark.parametrize("own", [None, {"safe-to-evict": "false"}])
def test_nodes_may_be_removed_that_only_a_volume_of_ours_would_keep(
    own: dict[str, str] | None,
) -> None:
    """Unless the user says that they may not."""
    template = {
        f"cluster-autoscaler.kubernetes.io/{name}": says for name, says in (own or {}).items()
    }
    spec = {
        **IN_CONFIG_MAP,
        "processingElement": {"podTemplate": {"metadata": {"annotations": template}}},
    }
    found = pod(spec)["metadata"]["annotations"]
    assert found["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] == "data"
    assert template.items() <= found.items()


def test_bundle_in_a_file_needs_no_volume() -> None:
    manifest = pod({"bundle": {"file": "/var/lib/streamgraft/checkpoints/b.zip"}})
    assert environment(manifest)["STREAMGRAFT_BUNDLE"] == "/var/lib/streamgraft/checkpoints/b.zip"
    volumes = {volume["name"] for volume in manifest["spec"]["volumes"]}
    assert volumes == {"checkpoints", "data"}


def test_bundle_in_a_config_map_is_mounted_by_its_key() -> None:
    manifest = pod({"bundle": {"configMap": {"name": "apps", "key": "flights.zip"}}})
    assert environment(manifest)["STREAMGRAFT_BUNDLE"] == "/etc/streamgraft/bundle/flights.zip"
    volumes = {volume["name"]: volume for volume in manifest["spec"]["volumes"]}
    assert volumes["bundle"]["configMap"]["name"] == "apps"


def test_slots_and_spark_settings_are_the_elements() -> None:
    job = JobSpec.model_validate(IN_CONFIG_MAP)
    item = manifests.processing_element(OWNER, job, planned(), "content", [0], 5)
    item["spec"] |= {"slots": 3, "sparkConf": {"spark.a": "1"}}
    item["metadata"]["uid"] = "pe-uid"
    item["status"] = {"launchCount": 7}
    variables = environment(manifests.pod(item, OWNER, job, SETTINGS, None))
    assert variables["STREAMGRAFT_SLOTS"] == "3"
    assert variables["STREAMGRAFT_SPARK_CONF"] == '{"spark.a": "1"}'


def test_settings_of_the_job_reach_the_pod() -> None:
    settings = {
        "heapMb": 900,
        "javaOptions": "-XX:+UseG1GC",
        "env": {"TZ": "UTC", "STREAMGRAFT_JOB": "forged"},
        "resources": {"requests": {"cpu": "2"}},
    }
    manifest = pod({**IN_CONFIG_MAP, "processingElement": {**settings, "image": "mine:2"}})
    container = manifest["spec"]["containers"][0]
    assert container["image"] == "mine:2"
    assert container["resources"]["requests"] == {"cpu": "2"}
    variables = environment(manifest)
    assert variables["TZ"] == "UTC"
    assert variables["STREAMGRAFT_HEAP_MB"] == "900"
    assert variables["STREAMGRAFT_JOB"] == "flights"
    names = [entry["name"] for entry in container["env"]]
    assert len(names) == len(set(names))


def test_pod_is_restarted_by_nobody_else_and_probed() -> None:
    spec = pod(IN_CONFIG_MAP)["spec"]
    container = spec["containers"][0]
    assert spec["restartPolicy"] == "Never"
    assert spec["serviceAccountName"] == "streamgraft-pe"
    assert container["command"] == ["python", "-m", "streamgraft_pe_runtime"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["readinessProbe"]["periodSeconds"] == 1
    assert container["livenessProbe"]["initialDelaySeconds"] == 60


@pytest.mark.parametrize(
    "change",
    [
        {"processingElement": {"image": "other"}},
        {"processingElement": {"heapMb": 500}},
        {"processingElement": {"env": {"A": "b"}}},
        {"processingElement": {"resources": {"limits": {"cpu": "1"}}}},
        {"processingElement": {"probeIntervalSeconds": 5}},
        {"processingElement": {"podTemplate": {"spec": {"hostNetwork": True}}}},
        {
            "processingElement": {
                "checkpointRepository": {"fileSystem": {"volumeClaim": {"name": "c"}}}
            }
        },
        {"bundle": {"configMap": {"name": "other"}}},
        {"transportSecurity": {"type": "TLS"}},
    ],
)
def test_content_id_covers_what_needs_a_restart(change: dict[str, Any]) -> None:
    before = JobSpec.model_validate(IN_CONFIG_MAP)
    after = JobSpec.model_validate({**IN_CONFIG_MAP, **change})
    assert manifests.settings_id(before, SETTINGS) != manifests.settings_id(after, SETTINGS)


def test_content_is_not_changed_by_what_pods_do_not_depend_on() -> None:
    spec = JobSpec.model_validate(IN_CONFIG_MAP)
    live = {"appTraceLevel": "DEBUG", "restartFailedPod": False}
    others = {"warmPool": 2, "submissionTimeoutSeconds": 5}
    validity = {"certificateValidityDays": 7}
    later = JobSpec.model_validate(
        {**IN_CONFIG_MAP, **others, "processingElement": live, "transportSecurity": validity}
    )
    assert manifests.settings_id(spec, SETTINGS) == manifests.settings_id(later, SETTINGS)


def test_a_warm_pod_differs_from_the_pod_of_a_pe_in_identity_only() -> None:
    spec = JobSpec.model_validate(IN_CONFIG_MAP)
    warm = manifests.warm_pod("flights-warm-1", planned(), OWNER, spec, SETTINGS)
    taken = pod(IN_CONFIG_MAP)
    assert warm["metadata"]["labels"] == {
        "streamgraft.io/job": "flights",
        "streamgraft.io/generation": "3",
        "streamgraft.io/pool": "warm",
    }
    named = {**environment(taken), "STREAMGRAFT_POD": "flights-warm-1"}
    assert environment(warm) == named
    for manifest in (warm, taken):
        manifest["spec"]["containers"][0].pop("env")
        assert manifest["spec"].pop("topologySpreadConstraints")
    assert warm["spec"] == taken["spec"]


def test_transport_security_is_in_the_pods_of_pes_and_of_the_pool() -> None:
    security = {"type": "TLS", "kafkaSecret": "brokers"}
    spec = {**IN_CONFIG_MAP, "transportSecurity": security}
    job = JobSpec.model_validate(spec)
    warm = manifests.warm_pod("flights-warm-1", planned(), OWNER, job, SETTINGS)
    for manifest in (warm, pod(spec)):
        annotations = manifest["metadata"]["annotations"]
        assert annotations["streamgraft.io/control-scheme"] == "https"
        volumes = {item["name"]: item for item in manifest["spec"]["volumes"]}
        assert volumes["control-tls"]["secret"]["secretName"] == "flights-tls"
        assert volumes["kafka-tls"]["secret"]["secretName"] == "brokers"
        found = environment(manifest)
        assert found["STREAMGRAFT_CONTROL_TLS"] == "/etc/streamgraft/tls/control"
        assert found["STREAMGRAFT_KAFKA_TLS"] == "/etc/streamgraft/tls/kafka"
        container = manifest["spec"]["containers"][0]
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    assert "streamgraft.io/control-scheme" not in pod(IN_CONFIG_MAP)["metadata"]["annotations"]


def test_processing_element_follows_its_job() -> None:
    settings = {"heapMb": 700, "slots": 2}
    job = JobSpec.model_validate({**IN_CONFIG_MAP, "processingElement": settings})
    spec = manifests.processing_element(OWNER, job, planned(), "content", [1, 0], 5)["spec"]
    assert spec["bundleDigest"] == "d"
    assert spec["restartable"] is True
    assert spec["inherited"] == {"heapMb": 700}
    assert (spec["shards"], spec["epoch"]) == ([0, 1], 5)


def test_config_map_holds_the_metadata() -> None:
    manifest = manifests.pe_config_map(OWNER, planned(), "content")
    assert manifest["metadata"]["name"] == "flights-4"
    document = json.loads(manifest["data"]["pe.json"])
    assert PeMetadata.model_validate(document) == planned().metadata


def test_job_config_map_holds_port_labels() -> None:
    label = PortLabel(pe=4, port=0, topic="ns.flights.legs.delays")
    manifest = manifests.job_config_map(OWNER, {"sum[2].0": label}, [], "content", {"emptyDir": {}})
    assert json.loads(manifest["data"]["port-labels.json"]) == {
        "sum[2].0": {"pe": 4, "port": 0, "topic": "ns.flights.legs.delays"}
    }
    assert manifests.checkpoints_of(manifest) == {"emptyDir": {}}


def test_service_selects_the_pods_of_the_pe() -> None:
    spec = manifests.service(OWNER, planned())["spec"]
    assert spec["selector"] == {"streamgraft.io/pe": "flights-4"}
    assert spec["ports"][0]["port"] == 10000


def test_a_declared_service_selects_the_pe_of_its_operator() -> None:
    """In a region the pods of that stage in all channels, outside of one the pod of the PE."""
    declared = ServiceDeclaration(name="api", operator="sum", port=80, target_port=8080)
    alone = replace(planned(), region=None)
    alone = replace(alone, metadata=alone.metadata.model_copy(update={"operators": ["sum"]}))
    found = manifests.declared_service(OWNER, Topology((), (alone,), (), (), {}), declared)
    assert found["metadata"]["name"] == "flights-api"
    assert found["metadata"]["ownerReferences"] == [OWNER.reference()]
    assert found["spec"] == {
        "selector": {"streamgraft.io/pe": "flights-4"},
        "ports": [{"name": "api", "port": 80, "targetPort": 8080}],
    }
    inside = replace(alone, region="delays", channel=0, stage=1)
    found = manifests.declared_service(OWNER, Topology((), (inside,), (), (), {}), declared)
    assert found["spec"]["selector"] == {
        "streamgraft.io/job": "flights",
        "streamgraft.io/region": "delays",
        "streamgraft.io/stage": "1",
    }


def test_a_declared_host_pool_is_the_jobs_alone() -> None:
    declared = HostPoolDeclaration(name="fast", tags=["ssd"], size=2, exclusive=True)
    found = manifests.host_pool(OWNER, declared)
    assert found["metadata"]["name"] == "flights-fast"
    assert found["spec"] == {"job": "flights", "tags": ["ssd"], "size": 2, "exclusive": True}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (300, "handover")),
        ({"changeDeadlineSeconds": 20, "strategy": "savepoint"}, (20, "savepoint")),
    ],
)
def test_region_has_the_settings_of_its_job(
    given: dict[str, Any], expected: tuple[int, str]
) -> None:
    plan = PlannedRegion(
        "flights-delays", Region(name="delays", key=["k"], max_width=4), ("sum",), 2, 0
    )
    job = JobSpec.model_validate({**IN_CONFIG_MAP, "regions": {"delays": given}})
    topology = Topology((), (planned(),), (plan,), (), {})
    spec = manifests.parallel_region(OWNER, job, topology, plan, "content")["spec"]
    assert (spec["changeDeadlineSeconds"], spec["strategy"]) == expected
    assert (spec["width"], spec["key"]) == (2, ["k"])


def test_a_stage_weighs_what_its_heaviest_operator_does() -> None:
    weights = {"light": 0.5, "heavy": 3.0}
    scaling = Autoscaling(utilization_weights=weights)
    region = Region(name="delays", key=["k"], max_width=4, autoscaling=scaling)
    plan = PlannedRegion("flights-delays", region, ("light", "other"), 1, 4)

    def stage(number: int, *operators: str) -> PlannedPe:
        pe = planned(channel=0)
        metadata = pe.metadata.model_copy(update={"operators": list(operators)})
        return replace(pe, region="delays", stage=number, metadata=metadata)

    stages = (stage(1, "other"), stage(0, "light", "heavy"), stage(2, "light"))
    job = JobSpec.model_validate(IN_CONFIG_MAP)
    topology = Topology((), stages, (plan,), (), {})
    spec = manifests.parallel_region(OWNER, job, topology, plan, "content")["spec"]
    assert [stage["weight"] for stage in spec["stages"]] == [3.0, 1.0, 0.5]


@pytest.mark.parametrize("real_time", [True, False])
def test_a_stage_tells_whether_it_runs_in_real_time(real_time: bool) -> None:
    """Nobody knows then how busy its shards are."""
    plan = PlannedRegion(
        "flights-delays", Region(name="delays", key=["k"], max_width=4), ("sum",), 1, 2
    )
    pe = planned(channel=0)
    metadata = pe.metadata.model_copy(update={"real_time": real_time})
    topology = Topology((), (replace(pe, region="delays", metadata=metadata),), (plan,), (), {})
    job = JobSpec.model_validate(IN_CONFIG_MAP)
    spec = manifests.parallel_region(OWNER, job, topology, plan, "content")["spec"]
    assert [stage["realTime"] for stage in spec["stages"]] == [real_time]


def test_region_content_id_is_that_of_all_widths() -> None:
    region = Region(name="delays", key=["k"], max_width=4)

    def coded(code: str, channel: int) -> PlannedPe:
        pe = planned(channel=channel)
        content = graph_content(pe.metadata.model_copy(update={"code": code}))
        return replace(pe, content=content)

    def content_id(width: int, pe_content: str) -> str:
        plan = PlannedRegion("flights-delays", region, ("sum",), width, first_pe_id=2)
        pes = tuple(coded(pe_content, channel) for channel in range(width))
        stages = (coded(pe_content, 0),)
        topology = Topology(pes, stages, (plan,), (), {})
        return manifests.region_content_id(topology, plan, "settings")

    assert content_id(0, "a") == content_id(1, "a") == content_id(3, "a")
    assert content_id(1, "a") != content_id(1, "b")


@pytest.mark.parametrize("kept", [True, False])
def test_cuts_that_stay_on_the_volume(kept: bool) -> None:
    region = ConsistentRegion(name="all", operators=["read"], period_seconds=5, repository=kept)
    spec = ConsistentRegionSpec.model_validate(manifests.consistent_region(OWNER, region)["spec"])
    assert spec.repository == kept
    cut = manifests.cut_savepoint(OWNER, spec, 1)
    assert cut["spec"]["repository"] == kept
