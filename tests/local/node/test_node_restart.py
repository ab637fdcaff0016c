"""The node process itself comes and goes."""

import os
import signal
from typing import Any

import pytest

from streamgraft_local.node.process import marked

pytestmark = pytest.mark.integration

Object = dict[str, Any]
TRAP = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done"


def container_id(pod: Object) -> str:
    """Return the id of the pod's first container."""
    return str(pod["status"]["containerStatuses"][0].get("containerID", ""))


async def test_a_killed_node_adopts_its_pods(api: Any, own_node: Any) -> None:
    await api.run(own_node, "p", "sh", "-c", TRAP)
    before = await api.until_phase("p", "Running")
    own_node.send(signal.SIGKILL)
    own_node.start()
    await api.run(own_node, "sign-of-life", "true", restartPolicy="Never")
    await api.until_phase("sign-of-life", "Succeeded")
    after = await api.pod("p")
    assert container_id(after) == container_id(before)
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    assert after["status"]["podIP"] == before["status"]["podIP"]
    await api.client.delete(api.path("pods", "p"))
    await api.until_gone("p")
    assert not marked(own_node.home)


async def test_what_ended_meanwhile_is_reported(api: Any, own_node: Any) -> None:
    await api.run(own_node, "never", "sleep", "1000", restartPolicy="Never")
    await api.run(own_node, "always", "sleep", "1000", restartPolicy="Always")
    await api.run(own_node, "deleted", "sleep", "1000")
    for name in ("never", "always", "deleted"):
        await api.until_phase(name, "Running")
    own_node.send(signal.SIGKILL)
    for pid, folder in marked(own_node.home).items():
        if "_deleted_" not in folder:
            os.kill(pid, signal.SIGKILL)
    await api.delete_by_force("pods", "deleted")
    own_node.start()
    failed = await api.until_phase("never", "Failed")
    ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["reason"] == "ContainerStatusUnknown"
    await api.until(
        "always",
        lambda pod: (
            pod["status"]["containerStatuses"][0]["restartCount"] == 1
            and pod["status"]["phase"] == "Running"
            and "running" in pod["status"]["containerStatuses"][0]["state"]
        ),
    )
    assert not [folder for folder in marked(own_node.home).values() if "_deleted_" in folder]


async def test_sigterm_ends_all_pods_gracefully(api: Any, own_node: Any) -> None:
    pod = await api.run(own_node, "p", "sh", "-c", TRAP)
    await api.until_logged("p", "up")
    assert own_node.send(signal.SIGTERM) == 0
    assert not marked(own_node.home)
    identity = f"{api.namespace}_p_{pod['metadata']['uid']}"
    assert (own_node.home / "pods" / identity / "main" / "0.log").read_text() == "up\nasked\n"
    ended = (await api.pod("p"))["status"]
    assert (ended["phase"], ended["reason"]) == ("Failed", "Terminated")
    assert ended["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
