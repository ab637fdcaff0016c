"""Pods on a process node, seen through the real API server."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamgraft_local.node.api import patch_status
from streamgraft_local.node.process import marked

pytestmark = pytest.mark.integration

Object = dict[str, Any]
READ = "import json, os, sys; print(json.dumps([dict(os.environ), sys.argv]))"
TRAP = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done"


def condition(pod: Object, kind: str) -> str:
    """Return the status of a condition, "" if it is missing."""
    found = [item for item in pod["status"].get("conditions", []) if item["type"] == kind]
    return str(found[0]["status"]) if found else ""


def main(pod: Object) -> Object:
    """Return the status of the container `main`."""
    status: Object = (pod["status"].get("containerStatuses") or [{"state": {}}])[0]
    return status


async def test_node_is_ready(api: Any, node: Any) -> None:
    await api.run(node, "p", "true", restartPolicy="Never")
    await api.until_phase("p", "Succeeded")
    found = await api.client.get(f"/api/v1/nodes/{node.name}")
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == node.name
    assert found["status"]["allocatable"]["cpu"] == "64"
    assert condition(found, "Ready") == "True"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}"
    assert (await api.client.get(lease))["spec"]["leaseDurationSeconds"] == 40


async def test_environment(api: Any, node: Any) -> None:
    await api.create("configmaps", "cm", data={"KEY": "from map"})
    await api.create("secrets", "se", stringData={"password": "hidden"})
    env = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "se", "key": "password"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        {"name": "COMPOSED", "value": "$(KEY)/$(UNKNOWN)/$$(KEY)"},
    ]
    pod = await api.run(
        node,
        "p",
        *("python", "-c", READ, "$(LABEL)"),
        env=env,
        envFrom=[{"configMapRef": {"name": "cm"}}],
        resources={"requests": {"cpu": "1500m"}},
        restartPolicy="Never",
        metadata={"labels": {"a/b": "c"}},
    )
    pod = await api.until_phase("p", "Succeeded")
    variables, arguments = json.loads(await api.logs("p"))
    assert variables["IP"] == pod["status"]["podIP"]
    assert variables["IP"].startswith("127.")
    assert variables["PASSWORD"] == "hidden"
    assert variables["CPU"] == "2"
    assert variables["COMPOSED"] == "from map/$(UNKNOWN)/$(KEY)"
    assert variables["FROM_IMAGE"] == "image"
    assert variables["STREAMGRAFT_CLUSTER_ID"] == node.name
    assert arguments == ["-c", "c"]


async def test_volumes_are_seen_under_their_mount_paths(api: Any, node: Any, tmp_path: Any) -> None:
    await api.create("configmaps", "cm", data={"a.txt": "A", "b.txt": "B"})
    await api.create("secrets", "se", stringData={"key": "S"})
    (tmp_path / "f").write_text("H")
    volumes = [
        {"name": "c", "configMap": {"name": "cm", "items": [{"key": "a.txt", "path": "x/a"}]}},
        {"name": "s", "secret": {"secretName": "se"}},
        {"name": "h", "hostPath": {"path": str(tmp_path)}},
        {"name": "e", "emptyDir": {}},
        {
            "name": "d",
            "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]},
        },
    ]
    mounts = [{"name": name, "mountPath": f"/m/{name}"} for name in "cshed"]
    script = "cat /m/c/x/a /m/s/key /m/h/f /m/d/n $FILE; echo E > /m/e/f"
    init = {"name": "init", "image": "none", "command": ["sh", "-c", "echo I > /m/e/i"]}
    await api.run(
        node,
        "p",
        *("sh", "-c", script),
        env=[{"name": "FILE", "value": "/m/e/i"}],
        volumes=volumes,
        volumeMounts=mounts,
        initContainers=[init | {"volumeMounts": mounts}],
        restartPolicy="Never",
    )
    await api.until_phase("p", "Succeeded")
    assert await api.logs("p") == "ASHpI\n"


async def test_config_map_volume_follows_the_config_map(api: Any, node: Any) -> None:
    await api.create("configmaps", "cm", data={"a": "one"})
    script = 'echo "$(cat /cfg/a)"; until [ "$(cat /cfg/a)" = two ]; do sleep 0.1; done; ls /cfg'
    await api.run(
        node,
        "p",
        *("sh", "-c", script),
        volumes=[{"name": "c", "configMap": {"name": "cm"}}],
        volumeMounts=[{"name": "c", "mountPath": "/cfg"}],
        restartPolicy="Never",
    )
    await api.until_logged("p", "one")
    await api.client.patch(api.path("configmaps", "cm"), {"data": {"a": "two", "b": "new"}})
    await api.until_phase("p", "Succeeded")
    assert await api.logs("p") == "one\na\nb\n"


async def test_missing_config_map_keeps_the_container_waiting(api: Any, node: Any) -> None:
    source = {"configMapKeyRef": {"name": "later", "key": "a"}}
    env = [{"name": "A", "valueFrom": source}]
    await api.run(node, "p", "sh", "-c", "echo $A", env=env, restartPolicy="Never")
    pod = await api.until("p", lambda pod: "message" in main(pod)["state"].get("waiting", {}))
    waiting = main(pod)["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"] == 'ConfigMap "later" not found'
    await api.create("configmaps", "later", data={"a": "here"})
    await api.until_phase("p", "Succeeded")
    assert await api.logs("p") == "here\n"


async def test_claim_gets_a_folder_that_outlives_pods(api: Any, node: Any) -> None:
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    await api.create("persistentvolumeclaims", "claim", spec=claim)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    mount = {"name": "v", "mountPath": "/data"}
    for name, script in (("writer", "echo kept > /data/f"), ("reader", "cat /data/f")):
        command = ("sh", "-c", script)
        more = {"volumes": [volume], "volumeMounts": [mount], "restartPolicy": "Never"}
        await api.run(node, name, *command, **more)
        await api.until_phase(name, "Succeeded")
    assert await api.logs("reader") == "kept\n"
    bound = await api.client.get(api.path("persistentvolumeclaims", "claim"))
    assert bound["status"]["phase"] == "Bound"
    volume_path = f"/api/v1/persistentvolumes/{bound['spec']['volumeName']}"
    folder = (await api.client.get(volume_path))["spec"]["hostPath"]["path"]
    await api.delete_by_force("pods")
    await api.client.delete(api.path("persistentvolumeclaims", "claim"))
    await api.until_removed(folder)


async def test_pod_reaches_the_api_as_its_service_account(api: Any, node: Any) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{api.namespace}"
    await api.client.create(f"{base}/roles", {"metadata": {"name": "r"}, "rules": rules})
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": api.namespace}],
    }
    await api.client.create(f"{base}/rolebindings", binding)
    await api.create("configmaps", "cm", data={"a": "seen"})
    script = f"""
import asyncio
from streamgraft_common.kube import ApiError, KubeClient, account_config
async def read():
    async with KubeClient(account_config()) as client:
        print((await client.get("{api.path("configmaps", "cm")}"))["data"]["a"])
        try:
            await client.get("{api.path("secrets")}")
        except ApiError as error:
            print(error.code, account_config().namespace)
asyncio.run(read())
"""
    await api.run(node, "p", "python", "-c", script, restartPolicy="Never")
    await api.until_phase("p", "Succeeded")
    assert await api.logs("p") == f"seen\n403 {api.namespace}\n"


async def test_phases_and_exit_codes(api: Any, node: Any) -> None:
    await api.run(node, "code", "sh", "-c", "exit 3", restartPolicy="Never")
    await api.run(node, "signal", "sh", "-c", "kill -9 $$$$", restartPolicy="Never")
    await api.run(node, "absent", "/no/such/program", restartPolicy="Never")
    await api.run(node, "no-command", restartPolicy="Never")
    expected = {"code": (3, "Error"), "signal": (137, "Error"), "absent": (128, "StartError")}
    for name, (code, reason) in expected.items():
        ended = main(await api.until_phase(name, "Failed"))["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (code, reason)
    pod = await api.until("no-command", lambda pod: "message" in main(pod)["state"]["waiting"])
    assert "set `command`" in main(pod)["state"]["waiting"]["message"]


async def test_init_container_that_fails_fails_the_pod(api: Any, node: Any) -> None:
    init = {"name": "init", "image": "none", "command": ["false"]}
    await api.run(node, "p", "true", initContainers=[init], restartPolicy="Never")
    pod = await api.until_phase("p", "Failed")
    assert condition(pod, "Initialized") == "False"
    assert main(pod)["state"]["waiting"]["reason"] == "PodInitializing"


async def test_restarts_with_back_off_and_previous_log(api: Any, node: Any) -> None:
    script = "echo run >> count; wc -l < count; [ $(wc -l < count) -ge 3 ]"
    await api.run(node, "p", "sh", "-c", script, restartPolicy="OnFailure")
    pod = await api.until("p", lambda pod: main(pod)["state"].get("waiting", {}).get("reason"))
    pod = await api.until_phase("p", "Succeeded")
    assert main(pod)["restartCount"] == 2
    assert main(pod)["lastState"]["terminated"]["exitCode"] == 1
    assert await api.logs("p") == "3\n"
    assert await api.logs("p", previous="true") == "2\n"


async def test_probes_decide_about_ready_and_restart(api: Any, node: Any) -> None:
    def probe(file: str, **more: Any) -> Object:
        return {"exec": {"command": ["test", "-e", f"/s/{file}"]}, "periodSeconds": 1} | more

    volume = {"name": "s", "emptyDir": {}}
    await api.run(
        node,
        "p",
        *("sh", "-c", "touch /s/alive /s/started; sleep 1000"),
        volumes=[volume],
        volumeMounts=[{"name": "s", "mountPath": "/s"}],
        startupProbe=probe("started", failureThreshold=100),
        livenessProbe=probe("alive", failureThreshold=1),
        readinessProbe=probe("ready", failureThreshold=1),
        terminationGracePeriodSeconds=1,
    )
    pod = await api.until("p", lambda pod: main(pod).get("started"))
    assert condition(pod, "Ready") == "False"
    identity = f"{api.namespace}_p_{pod['metadata']['uid']}"
    folder = node.home / "pods" / identity / "_volumes" / "s"
    (folder / "ready").touch()
    await api.until("p", lambda pod: condition(pod, "Ready") == "True")
    (folder / "ready").unlink()
    await api.until("p", lambda pod: condition(pod, "Ready") == "False")
    (folder / "alive").unlink()
    await api.until("p", lambda pod: main(pod).get("restartCount") == 1)


async def test_what_others_say_of_readiness_is_put_right(api: Any, node: Any) -> None:
    """As the node life-cycle controller does with all pods of a node that was silent."""
    await api.run(node, "p", "sleep", "1000")
    await api.until("p", lambda pod: condition(pod, "Ready") == "True")
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    patched = await patch_status(api.client, api.path("pods", "p"), None, unready)
    assert condition(patched, "Ready") == "False"
    await api.until("p", lambda pod: condition(pod, "Ready") == "True")


async def test_http_probe_on_a_named_port_of_the_pods_address(api: Any, node: Any) -> None:
    script = "import http.server as h, os\n"
    script += "h.HTTPServer((os.environ['IP'], 8000), h.SimpleHTTPRequestHandler).serve_forever()"
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    for name in ("a", "b"):
        await api.run(
            node,
            name,
            *("python", "-c", script),
            env=env,
            ports=[{"name": "web", "containerPort": 8000}],
            readinessProbe={"httpGet": {"port": "web", "path": "/"}, "periodSeconds": 1},
        )
    addresses = set()
    for name in ("a", "b"):
        pod = await api.until(name, lambda pod: condition(pod, "Ready") == "True")
        addresses.add(pod["status"]["podIP"])
    assert len(addresses) == 2


async def test_deletion_asks_the_first_process_and_kills_the_rest(api: Any, node: Any) -> None:
    script = f"setsid sleep 1000 & {TRAP}"
    pod = await api.run(
        node,
        "p",
        *("sh", "-c", script),
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> $OUT"]}}},
        env=[{"name": "OUT", "value": "/out/log"}],
        volumeMounts=[{"name": "o", "mountPath": "/out"}],
        volumes=[{"name": "o", "hostPath": {"path": str(node.home.parent)}}],
    )
    await api.until_logged("p", "up")
    folder = node.home / "pods" / f"{api.namespace}_p_{pod['metadata']['uid']}"
    assert len(marked(folder)) >= 2
    await api.client.delete(api.path("pods", "p"))
    await api.until_gone("p")
    assert not marked(folder)
    assert (node.home.parent / "log").read_text() == "hook\n"


async def test_a_process_that_ignores_sigterm_is_killed(api: Any, node: Any) -> None:
    pod = await api.run(
        node,
        "p",
        *("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"),
        terminationGracePeriodSeconds=1,
    )
    await api.until_logged("p", "up")
    await api.client.delete(api.path("pods", "p"))
    await api.until_gone("p")
    assert not marked(node.home / "pods" / f"{api.namespace}_p_{pod['metadata']['uid']}")


async def test_logs_are_served_whole_by_tail_and_while_written(api: Any, node: Any) -> None:
    script = "seq 5; until [ -e go ]; do sleep 0.1; done; echo last"
    pod = await api.run(node, "p", "sh", "-c", script, restartPolicy="Never")
    await api.until_logged("p", "5")
    assert await api.logs("p", tailLines="2") == "4\n5\n"
    identity = f"{api.namespace}_p_{pod['metadata']['uid']}"
    followed = []
    async for line in api.client.lines(api.path("pods", "p/log"), follow="true", tailLines="1"):
        (node.home / "pods" / identity / "main" / "work" / "go").touch()
        followed.append(line)
    assert followed == ["5", "last"]


async def test_unsupported_pods_fail_with_the_reason(api: Any, node: Any) -> None:
    volume = {"name": "n", "nfs": {"server": "s", "path": "/p"}}
    await api.run(node, "p", "true", volumes=[volume])
    pod = await api.until_phase("p", "Failed")
    assert pod["status"]["message"] == "volume n: the process node has no volumes of kind nfs"


async def test_temporary_files_go_with_the_pod(api: Any, node: Any) -> None:
    """Also those of a process that is killed; and sockets have room for their paths."""
    make = (
        "import os, socket, tempfile; folder = tempfile.mkdtemp(); print(folder, flush=True); "
        "socket.socket(socket.AF_UNIX).bind(folder + '/' + 's' * 36); "
        "os.kill(os.getpid(), 9)"
    )
    await api.run(node, "p", "python", "-c", make, restartPolicy="Never")
    pod = await api.until_phase("p", "Failed")
    assert main(pod)["state"]["terminated"]["exitCode"] == 137
    folder = Path((await api.logs("p")).strip())
    assert folder.parent.name.startswith("streamgraft-pod-")
    await api.until_removed(str(folder.parent))
