"""What each setting of a PE does to its pod."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.manifests.test_manifests import IN_CONFIG_MAP, SETTINGS, environment, pod

from streamgraft_common.resources import CheckpointRepository
from streamgraft_operator.manifests.pod_settings import checkpoint_volume
from streamgraft_operator.manifests.template import merged


def container(own: dict[str, Any]) -> dict[str, Any]:
    """Return the container of a PE with these settings of its own."""
    result: dict[str, Any] = pod(IN_CONFIG_MAP, own)["spec"]["containers"][0]
    return result


def mounted(manifest: dict[str, Any], volume: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a volume and its mount, without their names."""
    spec = manifest["spec"]
    source = next(dict(item) for item in spec["volumes"] if item.pop("name") == volume)
    mounts = spec["containers"][0]["volumeMounts"]
    return source, next(dict(item) for item in mounts if item.pop("name") == volume)


def test_settings_of_the_pe_win_over_those_of_the_job() -> None:
    job = {**IN_CONFIG_MAP, "processingElement": {"heapMb": 500, "image": "job:1"}}
    manifest = pod(job, {"heapMb": 700})
    assert environment(manifest)["STREAMGRAFT_HEAP_MB"] == "700"
    assert manifest["spec"]["containers"][0]["image"] == "job:1"


def test_image_settings() -> None:
    own = {"image": "mine:2", "imagePullPolicy": "Always", "imagePullSecret": "registry"}
    manifest = pod(IN_CONFIG_MAP, own)
    assert manifest["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert manifest["spec"]["containers"][0]["image"] == "mine:2"
    assert manifest["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert "imagePullPolicy" not in container({})


def test_image_settings_of_the_installation() -> None:
    """Its registry is that of images made of ours, too; when to pull is said of ours alone."""
    ours = replace(SETTINGS, image_pull_secrets=("a", "b"), image_pull_policy="Never")
    manifest = pod(IN_CONFIG_MAP, settings=ours)
    assert manifest["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert manifest["spec"]["containers"][0]["imagePullPolicy"] == "Never"
    manifest = pod(IN_CONFIG_MAP, {"image": "mine:2", "imagePullSecret": "b"}, ours)
    assert manifest["spec"]["imagePullSecrets"] == [{"name": "b"}, {"name": "a"}]
    assert "imagePullPolicy" not in manifest["spec"]["containers"][0]


def test_probes() -> None:
    own = {"initialProbeDelaySeconds": 0, "probeIntervalSeconds": 5, "probeFailureThreshold": 2}
    probe = container(own)["livenessProbe"]
    assert probe["initialDelaySeconds"] == 0
    assert probe["periodSeconds"] == 5
    assert probe["failureThreshold"] == 2


def test_data_volume() -> None:
    claim = {"name": "files", "subPath": "a/b"}
    manifest = pod(IN_CONFIG_MAP, {"dataPath": "/data", "dataVolumeClaim": claim})
    assert not any("evict" in name for name in manifest["metadata"]["annotations"])
    assert environment(manifest)["STREAMGRAFT_DATA_PATH"] == "/data"
    assert mounted(manifest, "data") == (
        {"persistentVolumeClaim": {"claimName": "files"}},
        {"mountPath": "/data", "subPath": "a/b"},
    )


def test_checkpoint_volume_of_the_job() -> None:
    files = {"path": "/cp", "volumeClaim": {"name": "checkpoints-of-job", "subPath": "x"}}
    repository = {"checkpointRepository": {"fileSystem": files}}
    manifest = pod({**IN_CONFIG_MAP, "processingElement": repository})
    assert environment(manifest)["STREAMGRAFT_CHECKPOINT_ROOT"] == "/cp"
    assert mounted(manifest, "checkpoints") == (
        {"persistentVolumeClaim": {"claimName": "checkpoints-of-job"}},
        {"mountPath": "/cp", "subPath": "x"},
    )


def test_where_checkpoints_are_does_not_depend_on_where_pods_mount_them() -> None:
    files = {"volumeClaim": {"name": "c", "subPath": "x"}}
    default = {"persistentVolumeClaim": {"claimName": "ours"}}
    assert checkpoint_volume(None, default) == default
    found = [
        checkpoint_volume(CheckpointRepository.model_validate({"fileSystem": item}), default)
        for item in (files, {**files, "path": "/cp"})
    ]
    assert found == [{"persistentVolumeClaim": {"claimName": "c"}, "subPath": "x"}] * 2


def with_repository(**repository: Any) -> dict[str, Any]:
    """Return the pod of a job whose copies are kept elsewhere, too."""
    pe = {"checkpointRepository": repository, "restrictedPropertiesSecret": "restricted"}
    return pod({**IN_CONFIG_MAP, "processingElement": pe})


def test_copies_in_an_object_store() -> None:
    bucket = {"bucket": "copies", "endpoint": "https://s3", "prefix": "a", "region": "x"}
    manifest = with_repository(s3={**bucket, "secret": "keys"})
    variables = environment(manifest)
    told = json.loads(variables["STREAMGRAFT_REPOSITORY"])
    assert told["s3"] == {**bucket, "secret": "keys"}
    assert mounted(manifest, "repository") == (
        {"secret": {"secretName": "keys"}},
        {"mountPath": variables["STREAMGRAFT_REPOSITORY_SECRET"], "readOnly": True},
    )
    assert "STREAMGRAFT_REPOSITORY_SECRET" not in environment(with_repository(s3=bucket))


def test_copies_on_redis() -> None:
    redis = {"service": "redis", "shardCount": 3, "replicaCount": 2, "port": 6380}
    manifest = with_repository(redis={**redis, "restrictedProperty": "password", "authority": "ca"})
    told = json.loads(environment(manifest)["STREAMGRAFT_REPOSITORY"])["redis"]
    assert told == {**redis, "restrictedProperty": "password", "authority": "ca"}
    assert mounted(manifest, "repository")[0] == {"secret": {"secretName": "restricted"}}
    assert "STREAMGRAFT_REPOSITORY_SECRET" not in environment(with_repository(redis=redis))


def test_copies_on_another_volume() -> None:
    files = {"path": "/copies", "volumeClaim": {"name": "others", "subPath": "x"}}
    manifest = with_repository(copies=files)
    assert environment(manifest)["STREAMGRAFT_COPIES"] == "/copies"
    assert mounted(manifest, "copies") == (
        {"persistentVolumeClaim": {"claimName": "others"}},
        {"mountPath": "/copies", "subPath": "x"},
    )
    assert "STREAMGRAFT_REPOSITORY" not in environment(with_repository(stateStore="RocksDB"))


@pytest.mark.parametrize(
    ("setting", "volume", "variable"),
    [
        ("appPropertiesSecret", "app-properties", "STREAMGRAFT_APP_PROPERTIES"),
        (
            "restrictedPropertiesSecret",
            "restricted-properties",
            "STREAMGRAFT_RESTRICTED_PROPERTIES",
        ),
    ],
)
def test_secrets_are_mounted(setting: str, volume: str, variable: str) -> None:
    manifest = pod(IN_CONFIG_MAP, {setting: "s"})
    path = environment(manifest)[variable]
    assert mounted(manifest, volume) == (
        {"secret": {"secretName": "s"}},
        {"mountPath": path, "readOnly": True},
    )


def test_debug_build() -> None:
    manifest = pod(IN_CONFIG_MAP, {"buildType": "debug", "javaOptions": "-Xint"})
    variables = environment(manifest)
    assert variables["PYTHONFAULTHANDLER"] == "1"
    assert variables["STREAMGRAFT_JAVA_OPTIONS"] == (
        "-ea -XX:+HeapDumpOnOutOfMemoryError -XX:HeapDumpPath=/var/lib/streamgraft/data -Xint"
    )
    assert container({"buildType": "debug"})["securityContext"] == SECURED
    assert "PYTHONFAULTHANDLER" not in environment(pod(IN_CONFIG_MAP, {"buildType": "release"}))


SECURED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_profilers_imply_debug() -> None:
    manifest = pod(IN_CONFIG_MAP, {"runWithProfilers": True, "dataPath": "/d"})
    variables = environment(manifest)
    assert variables["STREAMGRAFT_PROFILES"] == "/d/profiles"
    assert "filename=/d/profiles/flights-4-7.jfr" in variables["STREAMGRAFT_JAVA_OPTIONS"]
    assert "-ea" in variables["STREAMGRAFT_JAVA_OPTIONS"]


def test_own_settings_mark_the_pod_unless_they_are_live() -> None:
    def mark(own: dict[str, Any]) -> str | None:
        annotations = pod(IN_CONFIG_MAP, own)["metadata"]["annotations"]
        value: str | None = annotations.get("streamgraft.io/settings-id")
        return value

    assert mark({}) is None
    assert mark({"appTraceLevel": "DEBUG", "deleteFailedPod": False}) is None
    assert mark({"heapMb": 700}) not in (None, mark({"heapMb": 800}))


def test_pod_template_is_what_the_pod_is_written_into() -> None:
    template = {
        "metadata": {"labels": {"team": "a", "streamgraft.io/pe": "forged"}, "name": "forged"},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}],
            "restartPolicy": "Always",
            "containers": [
                {
                    "name": "pe",
                    "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                    "env": [{"name": "A", "value": "b"}, {"name": "STREAMGRAFT_POD", "value": "x"}],
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                },
                {"name": "sidecar", "image": "proxy"},
            ],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    }
    manifest = pod(IN_CONFIG_MAP, {"podTemplate": template})
    spec = manifest["spec"]
    assert manifest["metadata"]["name"] == "flights-4-7"
    assert manifest["metadata"]["labels"]["team"] == "a"
    assert manifest["metadata"]["labels"]["streamgraft.io/pe"] == "flights-4"
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["restartPolicy"] == "Never"
    assert [item["name"] for item in spec["containers"]] == ["pe", "sidecar"]
    own = spec["containers"][0]
    assert own["lifecycle"] == {"preStop": {"sleep": {"seconds": 1}}}
    assert own["image"] == "streamgraft/pe:1"
    variables = environment(manifest)
    assert (variables["A"], variables["STREAMGRAFT_POD"]) == ("b", "flights-4-7")
    assert {"name": "scratch", "mountPath": "/scratch"} in own["volumeMounts"]
    assert len(own["volumeMounts"]) == len(spec["volumes"]) == 4


def test_merging_keeps_everything_and_ours_wins() -> None:
    template = {"a": 1, "both": {"x": 1, "y": 1}, "plain": [1]}
    ours = {"both": {"y": 2}, "plain": [2], "b": 3}
    assert merged(template, ours) == {"a": 1, "b": 3, "both": {"x": 1, "y": 2}, "plain": [1, 2]}
