"""Submission: from a Job to pods, what goes wrong, and how it heals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle, condition

import streamgraft
from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT
from streamgraft_local import Cluster
from streamgraft_operator.application import fetching
from streamgraft_operator.kit.external_calls import PARALLEL_IN_NAMESPACE

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def test_job_becomes_healthy(
    world: World, player: HandPlayedPe, source_topic: str, kafka: AdminClient
) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    job = await world.job_in("Healthy")

    assert job["status"]["peCount"] == job["status"]["readyPeCount"] == 3
    assert job["status"]["message"] == "all 3 PEs are ready"
    assert sorted(await world.names(POD)) == ["job-0-1", "job-1-1", "job-2-1"]
    topics = kafka.list_topics(timeout=10).topics
    assert len(topics[f"{world.namespace}.job.raw.r"].partitions) == 4
    assert len(topics[f"{world.namespace}-out"].partitions) == 2


async def test_functions_of_a_pe_resolve_labels_of_ports(
    world: World,
    player: HandPlayedPe,
    source_topic: str,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.job_in("Healthy")
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("STREAMGRAFT_NAMESPACE", world.namespace)
    with pytest.raises(RuntimeError, match="in a PE only"):
        streamgraft.resolve("r.0")
    monkeypatch.setenv("STREAMGRAFT_JOB", "job")
    with pytest.raises(LookupError, match=r"no .* nothing.0 \(these do: .+\)") as error:
        await asyncio.to_thread(streamgraft.resolve, "nothing.0")
    label = str(error.value).partition("these do: ")[2].partition(",")[0].rstrip(")")
    found = await asyncio.to_thread(streamgraft.resolve, label)
    assert found.topic.startswith(f"{world.namespace}.job.")
    assert await world.get(PROCESSING_ELEMENT, found.pe)
    assert found.host == f"{found.pe}.{world.namespace}.svc"


async def test_missing_bundle_is_awaited(world: World, source_topic: str) -> None:
    await world.submit()
    job = await world.job_in("Pending")
    assert condition(job, "Accepted")["reason"] == "BundleMissing"
    assert "there is no ConfigMap bundle" in job["status"]["message"]

    await world.upload(bundle(application(world.namespace)))
    await world.job_in("Submitted")


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (b"no zip file", "BundleCorrupt", "this is no bundle"),
        (bundle({"format": 99, "builtBy": "9.0"}), "BundleTooNew", "built by Streamgraft 9.0"),
    ],
)
async def test_unusable_bundle_is_refused_until_replaced(
    world: World, source_topic: str, content: bytes, reason: str, words: str
) -> None:
    await world.upload(content)
    await world.submit()
    job = await world.job_in("Failed")
    assert condition(job, "Accepted")["reason"] == reason
    assert words in job["status"]["message"]

    await world.upload(bundle(application(world.namespace)))
    await world.job_in("Submitted")


async def test_unsound_graph_and_unknown_parameter_are_refused(
    world: World, source_topic: str
) -> None:
    await world.upload(bundle(application(world.namespace, streams=[])))
    await world.submit(parameters={"sped": "2"})
    job = await world.job(lambda status: "sped" in status.get("message", ""))
    assert "no parameter sped (it has speed)" in job["status"]["message"]

    await world.client.patch(JOB.path(world.namespace, "job"), {"spec": {"parameters": None}})
    job = await world.job(lambda status: "which is not declared" in status["message"])
    assert condition(job, "Accepted")["reason"] == "GraphInvalid"


async def test_missing_source_topic_is_awaited(world: World, kafka: AdminClient) -> None:
    """And reported beside everything else that is missing, not after it."""
    await world.upload(bundle(application(world.namespace)))
    await world.submit(processingElement={"appPropertiesSecret": "keys"})
    source = f"{world.namespace}-in"
    job = await world.job(lambda status: source in str(status.get("conditions")))
    assert job["status"]["phase"] == "Submitting"
    assert condition(job, "SourcesAvailable")["status"] == "False"
    assert "Secret keys" in condition(job, "ReferencesFound")["message"]
    assert await world.names(POD) == []

    for future in kafka.create_topics([NewTopic(source, 1, 1)]).values():
        future.result()
    await world.job_in("Submitted")


async def test_real_time_has_a_slot_for_each_partition_of_its_source(
    world: World, kafka: AdminClient
) -> None:
    """Counted when the topic comes, and again when it has more: with no second generation."""
    adl = application(world.namespace)
    adl["operators"][0]["realTime"] = True
    await world.upload(bundle(adl))
    await world.submit()
    source = f"{world.namespace}-in"
    await world.job(lambda status: source in str(status.get("conditions")))
    kafka.create_topics([NewTopic(source, 4, 1)])[source].result()
    job = await world.job_in("Submitted")
    assert job["status"]["sourceTopics"] == [{"topic": source, "partitions": 4}]
    assert job["status"]["generationId"] == 1
    assert (await world.pe("job-0", lambda _: True))["spec"]["slots"] == 4

    kafka.create_partitions([NewPartitions(source, 6)])[source].result()
    path = JOB.path(world.namespace, "job")
    await world.client.patch(path, {"spec": {"submissionTimeoutSeconds": 200}})  # it looks at once
    await world.pe("job-0", lambda item: item["spec"]["slots"] == 6)


async def test_absent_broker_is_named_and_awaited(world: World, source_topic: str) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit(bootstrapServers="127.0.0.1:1")
    job = await world.job(lambda status: "127.0.0.1:1" in status.get("message", ""))
    assert job["status"]["phase"] == "Submitting"
    assert condition(job, "KafkaAvailable")["reason"] == "KafkaUnavailable"

    path = JOB.path(world.namespace, "job")
    await world.client.patch(path, {"spec": {"bootstrapServers": None}})
    await world.job_in("Submitted")


async def test_an_equal_bundle_changes_nothing_and_other_code_who_uses_it(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    """No pod changes by either; the driver of that PE is told."""
    adl = application(world.namespace)
    adl["operators"][1] |= {"function": "work", "code": "a"}
    await world.upload(bundle(adl))
    await world.submit()
    job = await world.job_in("Healthy")
    before, contents = await world.uids(), await _contents(world)

    path = CONFIG_MAP.path(world.namespace, "bundle")
    await world.client.patch(path, {"metadata": {"labels": {"touched": "yes"}}})
    adl["operators"][1]["code"] = "b"
    await world.upload(bundle(adl))
    await world.job(lambda status: status["generationId"] == 2)
    await world.pe("job-2", lambda item: _content(item) != contents["job-2"])
    await world.job_in("Healthy")
    after = await _contents(world)
    assert {name for name in contents if contents[name] != after[name]} == {"job-2"}
    for pe in contents:
        assert (await world.pe(pe, lambda _: True))["status"]["launchCount"] == 1
    assert before == await world.uids()
    assert job["status"]["generationId"] == 1


async def _contents(world: World) -> dict[str, str]:
    """Return the content of each PE, by its name."""
    return {
        name: _content(await world.pe(name, lambda _: True)) for name in ("job-0", "job-1", "job-2")
    }


def _content(item: Object) -> str:
    return str(item["metadata"]["annotations"][names.ANNOTATION_CONTENT])


async def test_jobs_that_wait_for_servers_hold_up_no_other(
    world: World, player: HandPlayedPe, source_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 600.0)
    await world.upload(bundle(application(world.namespace)))
    async with silent_server() as (port, asked):
        for number in range(10):
            await world.submit(f"url-{number}", bundle={"url": f"http://127.0.0.1:{port}/b.zip"})
            await world.submit(f"kafka-{number}", bootstrapServers=f"127.0.0.1:{port}")
        async with asyncio.timeout(60):  # as many wait as may, for servers of both kinds
            while asked.count(b"GET ") < PARALLEL_IN_NAMESPACE or not {*asked} - {b"GET ", b""}:
                await asyncio.sleep(0.05)
        await world.submit("quick")
        await world.job(lambda status: status.get("submittedGeneration"), "quick")
        waiting = await world.job(lambda status: status.get("phase") == "Pending", "url-3")
        assert "its server has not answered yet" in waiting["status"]["message"]


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Serve a port that takes connections and never answers; give it, and how each began."""
    over, asked = asyncio.Event(), list[bytes]()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked.append(await reader.read(4))
            await over.wait()
        finally:
            writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked
        over.set()
