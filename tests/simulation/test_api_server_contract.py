"""What the operator relies on of the API server, held against the fake and the real one.

The fake runs with the unit tests, the real one (with the real controller manager) with the
integration tests. A difference between the two is a bug of the fake.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.simulation.conftest import WAIT_SECONDS, Api

from streamgraft_common.kube import Conflict, Gone, Invalid, NotFound
from streamgraft_common.kube.client import Object

LABEL = "test/part"


def region(name: str, **metadata: Any) -> Object:
    """Return a ParallelRegion of no job: nobody touches it."""
    return {
        "apiVersion": "streamgraft.io/v1alpha1",
        "kind": "ParallelRegion",
        "metadata": {"name": name, **metadata},
        "spec": {"job": "none", "region": name, "width": 1, "maxWidth": 4, "key": ["k"]},
    }


def config_map(name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"a": "1", "b": "2"},
    }


def pod(name: str, **metadata: Any) -> Object:
    """Return a pod that no scheduler can place."""
    resources = {"requests": {"cpu": "1000"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "c", "image": "none", "resources": resources}]},
    }


def owned_by(owner: Object, block: bool = False) -> list[Object]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
    ]


async def bind(api: Api, name: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "no-such-node"},
    }
    await api.client.create(api.path("pods", name) + "/binding", body)


def version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


async def test_creation(api: Api) -> None:
    """The server gives identity, version and generation; a status is not taken over."""
    sent = {**region("r", uid="mine", generation=7), "status": {"width": 3}}
    item = await api.client.create(api.path("parallelregions"), sent)
    metadata = item["metadata"]
    assert metadata["namespace"] == api.namespace
    assert metadata["uid"] not in ("", "mine")
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"].endswith("Z")
    assert version(item) > 0
    assert "status" not in item
    assert await api.client.get(api.path("parallelregions", "r")) == item
    with pytest.raises(Conflict) as error:
        await api.client.create(api.path("parallelregions"), sent)
    assert error.value.reason == "AlreadyExists"


async def test_generated_names(api: Api) -> None:
    sent = config_map("")
    sent["metadata"] = {"generateName": "made-"}
    first = await api.client.create(api.path("configmaps"), sent)
    second = await api.client.create(api.path("configmaps"), sent)
    made = {first["metadata"]["name"], second["metadata"]["name"]}
    assert len(made) == 2
    assert all(name.startswith("made-") and len(name) == 10 for name in made)


async def test_what_is_missing(api: Api) -> None:
    path = api.path("parallelregions", "none")
    for call in (
        api.client.get(path),
        api.client.patch(path, {"spec": {"width": 2}}),
        api.client.delete(path),
    ):
        with pytest.raises(NotFound):
            await call


async def test_generation_counts_changes_of_the_spec(api: Api) -> None:
    path = api.path("parallelregions", "r")
    await api.client.create(api.path("parallelregions"), region("r"))
    wider = await api.client.patch(path, {"spec": {"width": 2}})
    assert wider["metadata"]["generation"] == 2
    labelled = await api.client.patch(path, {"metadata": {"labels": {LABEL: "x"}}})
    assert labelled["metadata"]["generation"] == 2
    assert version(labelled) > version(wider)


async def test_status_and_spec_are_written_apart(api: Api) -> None:
    path = api.path("parallelregions", "r")
    await api.client.create(api.path("parallelregions"), region("r"))
    both = {"spec": {"width": 3}, "status": {"width": 2}}
    by_status = await api.client.patch(path + "/status", both)
    assert (by_status["spec"]["width"], by_status["status"]["width"]) == (1, 2)
    assert by_status["metadata"]["generation"] == 1
    by_spec = await api.client.patch(path, {"spec": {"width": 3}, "status": {"width": 4}})
    assert (by_spec["spec"]["width"], by_spec["status"]["width"]) == (3, 2)


async def test_a_write_that_changes_nothing_makes_no_version(api: Api) -> None:
    path = api.path("parallelregions", "r")
    item = await api.client.create(api.path("parallelregions"), region("r"))
    same = await api.client.patch(path, {"spec": {"width": 1}})
    assert version(same) == version(item)


async def test_stale_versions_conflict(api: Api) -> None:
    path = api.path("parallelregions", "r")
    old = await api.client.create(api.path("parallelregions"), region("r"))
    await api.client.patch(path, {"spec": {"width": 2}})
    stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}}
    with pytest.raises(Conflict) as error:
        await api.client.patch(path, {**stale, "spec": {"width": 3}})
    assert error.value.reason == "Conflict"
    with pytest.raises(Conflict):
        await api.client.patch(path + "/status", {**stale, "status": {"width": 1}})
    with pytest.raises(Conflict):
        await api.client.replace(path, old)
    with pytest.raises(Invalid):
        await api.client.replace(path, region("r"))
    assert (await api.client.get(path))["spec"]["width"] == 2


async def test_merge_patches(api: Api) -> None:
    path = api.path("configmaps", "c")
    await api.client.create(api.path("configmaps"), config_map("c", labels={LABEL: "x", "y": "z"}))
    patch = {"data": {"a": None, "c": "3"}, "metadata": {"labels": {LABEL: None}}}
    item = await api.client.patch(path, patch)
    assert item["data"] == {"b": "2", "c": "3"}
    assert item["metadata"]["labels"] == {"y": "z"}


async def test_a_null_within_something_new_leaves_nothing(api: Api) -> None:
    path = api.path("parallelregions", "r")
    await api.client.create(api.path("parallelregions"), region("r"))
    patch = {"status": {"assignment": {"0": 1, "1": None}}}
    item = await api.client.patch(path + "/status", patch)
    assert item["status"]["assignment"] == {"0": 1}


async def test_replacing(api: Api) -> None:
    item = await api.client.create(api.path("configmaps"), config_map("c"))
    changed = await api.client.replace(api.path("configmaps", "c"), {**item, "data": {"x": "y"}})
    assert changed["data"] == {"x": "y"}
    assert changed["metadata"]["uid"] == item["metadata"]["uid"]


async def test_finalizers_keep_a_deleted_object(api: Api) -> None:
    path = api.path("parallelregions", "r")
    await api.client.create(
        api.path("parallelregions"), region("r", finalizers=["streamgraft.io/x"])
    )
    await api.client.delete(path)
    waiting = await api.client.get(path)
    assert waiting["metadata"]["deletionTimestamp"]
    assert waiting["metadata"]["generation"] == 2
    await api.client.delete(path)
    assert version(await api.client.get(path)) == version(waiting)
    both = {"metadata": {"finalizers": ["streamgraft.io/x", "streamgraft.io/y"]}}
    with pytest.raises(Invalid):
        await api.client.patch(path, both)
    await api.client.patch(path, {"metadata": {"finalizers": []}})
    with pytest.raises(NotFound):
        await api.client.get(path)


async def test_deletion_of_this_very_object(api: Api) -> None:
    path = api.path("configmaps", "c")
    await api.client.create(api.path("configmaps"), config_map("c"))
    with pytest.raises(Conflict):
        await api.client.request("DELETE", path, body={"preconditions": {"uid": "another"}})
    assert (await api.client.get(path))["data"]


async def test_selecting_by_label(api: Api) -> None:
    for name, value in (("a", "x"), ("b", "x"), ("c", "y")):
        await api.client.create(api.path("configmaps"), config_map(name, labels={LABEL: value}))
    path = api.path("configmaps")

    async def selected(selector: str) -> list[str]:
        listing = await api.client.list(path, {"labelSelector": selector})
        return [item["metadata"]["name"] for item in listing["items"]]

    assert await selected(f"{LABEL}=x") == ["a", "b"]
    assert await selected(f"{LABEL}!=x,{LABEL}") == ["c"]
    assert await selected(LABEL) == ["a", "b", "c"]
    await api.client.delete(path, labelSelector=f"{LABEL}=x")
    assert await selected(LABEL) == ["c"]


async def test_selecting_by_field(api: Api) -> None:
    for name in ("a", "b"):
        await api.client.create(api.path("parallelregions"), region(name))
    listing = await api.client.list(
        api.path("parallelregions"), {"fieldSelector": "metadata.name=b"}
    )
    assert [item["metadata"]["name"] for item in listing["items"]] == ["b"]


async def test_items_of_lists(api: Api) -> None:
    """Those of custom resources say their kind, those of built-in kinds don't."""
    await api.client.create(api.path("parallelregions"), region("r"))
    await api.client.create(api.path("configmaps"), config_map("c"))
    regions = await api.client.get(api.path("parallelregions"))
    maps = await api.client.list(api.path("configmaps"), {"fieldSelector": "metadata.name=c"})
    assert regions["kind"] == "ParallelRegionList"
    assert [item["kind"] for item in regions["items"]] == ["ParallelRegion"]
    assert ["kind" in item for item in maps["items"]] == [False]
    assert version(regions) >= version(regions["items"][0])


async def test_metadata_only(api: Api) -> None:
    path = api.path("configmaps")
    query = {"fieldSelector": "metadata.name=c"}
    listing = await api.client.list(path, query, metadata_only=True)
    await api.client.create(path, config_map("c"))
    events = api.client.watch(
        path, listing["metadata"]["resourceVersion"], query, metadata_only=True
    )
    [(_, seen)] = await first(events, 1)
    listing = await api.client.list(path, query, metadata_only=True)
    for item in (seen, *listing["items"]):
        assert item["metadata"]["name"] == "c"
        assert "data" not in item


async def first(events: AsyncIterator[tuple[str, Object]], count: int) -> list[tuple[str, Object]]:
    """Return the first events of a watch that are no bookmarks."""
    found: list[tuple[str, Object]] = []
    async with asyncio.timeout(WAIT_SECONDS):
        async for kind, item in events:
            if kind != "BOOKMARK":
                found.append((kind, item))
            if len(found) == count:
                break
    return found


async def test_watches_tell_every_write(api: Api) -> None:
    path = api.path("parallelregions")
    start = (await api.client.get(path))["metadata"]["resourceVersion"]
    await api.client.create(path, region("r"))
    await api.client.patch(f"{path}/r", {"spec": {"width": 2}})
    last = await api.client.patch(f"{path}/r/status", {"status": {"width": 2}})
    await api.client.delete(f"{path}/r")
    events = await first(api.client.watch(path, start), 4)
    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert [item["kind"] for _, item in events] == ["ParallelRegion"] * 4
    versions = [version(item) for _, item in events]
    assert versions == sorted(set(versions))
    assert events[2][1] == last
    assert events[3][1]["status"] == {"width": 2}
    again = await first(api.client.watch(path, str(versions[1])), 2)
    assert again == events[2:]


async def test_objects_enter_and_leave_a_selection(api: Api) -> None:
    path = api.path("configmaps")
    query = {"labelSelector": f"{LABEL}=x"}
    start = (await api.client.list(path, query))["metadata"]["resourceVersion"]
    await api.client.create(path, config_map("c"))
    for value in ("x", "y"):
        await api.client.patch(f"{path}/c", {"metadata": {"labels": {LABEL: value}}})
    events = await first(api.client.watch(path, start, query), 2)
    assert [kind for kind, _ in events] == ["ADDED", "DELETED"]
    assert version(events[1][1]) > version(events[0][1])


async def test_a_watch_that_is_too_old(fake_api: Api) -> None:
    """The real server forgets its history after five minutes, the fake one when it is asked to."""
    with pytest.raises(Gone):
        await first(fake_api.client.watch(fake_api.path("configmaps"), "1"), 1)


async def test_server_side_apply(api: Api) -> None:
    path = api.path("configmaps", "c")
    made = await api.client.apply(path, config_map("c", labels={LABEL: "x"}), "one")
    assert made["data"] == {"a": "1", "b": "2"}
    await api.client.patch(path, {"data": {"other": "kept"}})
    body = {**config_map("c"), "data": {"a": "3"}}
    changed = await api.client.apply(path, body, "one")
    assert changed["data"] == {"a": "3", "other": "kept"}
    assert LABEL not in changed["metadata"].get("labels", {})
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_pod_that_runs_nowhere_is_deleted_at_once(api: Api) -> None:
    item = await api.client.create(api.path("pods"), pod("p"))
    assert item["status"]["phase"] == "Pending"
    await api.client.delete(api.path("pods", "p"))
    with pytest.raises(NotFound):
        await api.client.get(api.path("pods", "p"))


async def test_a_pod_on_a_node_is_given_time(api: Api) -> None:
    path = api.path("pods", "p")
    await api.client.create(api.path("pods"), pod("p"))
    await bind(api, "p")
    with pytest.raises(Conflict):
        await bind(api, "p")
    assert (await api.client.get(path))["spec"]["nodeName"] == "no-such-node"
    await api.client.delete(path)
    waiting = await api.client.get(path)
    assert waiting["metadata"]["deletionGracePeriodSeconds"] == 30
    assert waiting["metadata"]["deletionTimestamp"] > waiting["metadata"]["creationTimestamp"]
    await api.client.request("DELETE", path, body={"gracePeriodSeconds": 0})
    with pytest.raises(NotFound):
        await api.client.get(path)


async def test_a_pod_that_has_ended_is_deleted_at_once(api: Api) -> None:
    path = api.path("pods", "p")
    await api.client.create(api.path("pods"), pod("p"))
    await bind(api, "p")
    ended = await api.client.patch(path + "/status", {"status": {"phase": "Failed"}})
    assert ended["status"]["phase"] == "Failed"
    await api.client.delete(path)
    with pytest.raises(NotFound):
        await api.client.get(path)


async def test_dependents_go_after_their_owner(api: Api) -> None:
    owner = await api.client.create(api.path("parallelregions"), region("r"))
    await api.client.create(
        api.path("configmaps"), config_map("c", ownerReferences=owned_by(owner))
    )
    await api.client.create(api.path("configmaps"), config_map("free"))
    await api.client.delete(api.path("parallelregions", "r"))
    await api.gone(api.path("configmaps", "c"))
    assert await api.client.get(api.path("configmaps", "free"))


async def test_what_comes_after_its_owner_is_gone_goes_too(api: Api) -> None:
    owner = await api.client.create(api.path("parallelregions"), region("r"))
    await api.client.delete(api.path("parallelregions", "r"))
    await api.client.create(
        api.path("configmaps"), config_map("c", ownerReferences=owned_by(owner))
    )
    await api.gone(api.path("configmaps", "c"))


async def test_foreground_deletion_waits_for_dependents_that_block(api: Api) -> None:
    owner = await api.client.create(api.path("parallelregions"), region("r"))
    references = owned_by(owner, block=True)
    path = api.path("configmaps", "c")
    await api.client.create(
        api.path("configmaps"),
        config_map("c", ownerReferences=references, finalizers=["streamgraft.io/x"]),
    )
    await api.client.delete(api.path("parallelregions", "r"), propagation="Foreground")
    waiting = await api.client.get(api.path("parallelregions", "r"))
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until(path, lambda item: item and "deletionTimestamp" in item["metadata"])
    assert await api.client.get(api.path("parallelregions", "r"))
    await api.client.patch(path, {"metadata": {"finalizers": []}})
    await api.gone(api.path("parallelregions", "r"))
    await api.gone(path)


async def test_leases_are_taken_by_the_newest_version(api: Api) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0},
    }
    item = await api.client.create(api.path("leases"), lease)
    taken = {**item, "spec": {**item["spec"], "holderIdentity": "b"}}
    assert (await api.client.replace(api.path("leases", "l"), taken))["spec"] == taken["spec"]
    with pytest.raises(Conflict):
        await api.client.replace(api.path("leases", "l"), item)
