"""From a Job to a plan: settings of the whole job, and the bundle that it names."""

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.operator.integration.world import application, bundle

from streamgraft_common import names
from streamgraft_common.bundle import BundleCorrupt
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import Resources
from streamgraft_operator.application.bundles import (
    BundleAwaited,
    BundleMismatch,
    BundleMissing,
    Bundles,
)
from streamgraft_operator.application.expansion import Expander, Expansion
from streamgraft_operator.application.sources import Networks
from streamgraft_operator.application.versions import Versions
from streamgraft_operator.graph import GraphError, Submission, Topology
from streamgraft_operator.kit import external_calls
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.coordinators import Coordinators
from streamgraft_operator.kit.external_calls import ExternalCalls
from streamgraft_operator.kit.volume import Volume
from streamgraft_operator.settings import Settings

SETTINGS = Settings(bootstrap_servers="kafka:9092", checkpoint_volume={}, image="default:1")


async def expanded(file: Path, **spec: Any) -> Expansion:
    """Return the expansion of a job with this bundle; needs no API server for that."""
    return await expander().expand_submitted(job(file, **spec), {})


def expander() -> Expander:
    """Return one that has expanded nothing yet."""
    client = KubeClient(KubeConfig(server="http://127.0.0.1:1"))
    caches = Caches(client, ())
    write = Coordinators(client, caches)
    calls = ExternalCalls()
    bundles = Bundles(client, caches, write, calls, Volume(None, calls), Networks([]))
    return Expander(bundles, Versions(client, caches, write), SETTINGS)


def job(file: Path, **spec: Any) -> Object:
    """Return a Job with this bundle."""
    metadata: Object = {"namespace": "ns", "name": "job", "uid": "u", "generation": 1}
    if "submitted" in spec:
        metadata["annotations"] = {names.ANNOTATION_SUBMITTED: spec.pop("submitted")}
    source = {"file": str(file), **spec.pop("bundle", {})}
    status = spec.pop("status", {})
    return {"metadata": metadata, "spec": {"bundle": source, **spec}, "status": status}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which topologies were planned, one for each time."""
    threads: list[int] = []
    topology = Submission.topology

    def counted(submission: Submission, widths: Mapping[str, int]) -> Topology:
        threads.append(threading.get_ident())
        return topology(submission, widths)

    monkeypatch.setattr(Submission, "topology", counted)
    return threads


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A bundle of the application `tiny`: two PEs outside of a region of one channel."""
    path = tmp_path / "tiny.zip"
    path.write_bytes(bundle(application("topics")))
    return path


async def test_image_settings_of_the_job_are_inherited(file: Path) -> None:
    settings = {"image": "job:1", "imagePullPolicy": "Always", "imagePullSecret": "registry"}
    expansion = await expanded(file, **settings, processingElement={"image": "pe:1"})
    pe = expansion.spec.processing_element
    assert pe.image == "pe:1"
    assert pe.image_pull_policy == "Always"
    assert pe.image_pull_secret == "registry"


async def test_the_job_keeps_the_default_image_that_it_began_with(file: Path) -> None:
    """Until it is edited or submitted again: an upgrade of the operator restarts nothing."""
    status = {"image": "default:0", "imageGeneration": 1}
    kept = await expanded(file, status=status)
    assert kept.spec.processing_element.image == "default:0"
    again = await expanded(file, status=status, submitted="now")
    assert again.spec.processing_element.image == "default:1"
    seen = await expanded(file, status={**status, "imageSubmission": "now"}, submitted="now")
    assert seen.spec.processing_element.image == "default:0"
    edited = await expanded(file, status={**status, "imageGeneration": 0})
    assert edited.spec.processing_element.image == "default:1"
    assert kept.settings_id != edited.settings_id
    own = await expanded(file, image="job:1", status=status)
    assert own.spec.processing_element.image == "job:1"


async def test_resources_of_the_job_are_divided_among_its_pes(file: Path) -> None:
    expansion = await expanded(file, resources={"requests": {"cpu": "3"}})
    assert len(expansion.topology.pes) == 3
    assert expansion.spec.processing_element.resources == Resources(requests={"cpu": "1000m"})


async def test_a_job_leaves_its_savepoint_behind_once_it_is_restored(file: Path) -> None:
    origin = {"savepoint": {"name": "saved"}}
    before = await expanded(file, **origin)
    after = await expanded(file, **origin, status={"restored": True})
    assert {pe.metadata.savepoint for pe in before.topology.pes} == {"ns/savepoints/saved"}
    assert {pe.metadata.savepoint for pe in after.topology.pes} == {None}
    assert before.content_id == after.content_id  # nothing is written, nobody restarts


async def test_the_bundle_must_hold_the_application_that_is_named(file: Path) -> None:
    assert (await expanded(file, bundle={"name": "tiny"})).bundle.adl.name == "tiny"
    with pytest.raises(BundleMismatch, match="application tiny, not other"):
        await expanded(file, bundle={"name": "other"})


async def test_another_bundle_than_the_digest_says_is_waited_for(file: Path) -> None:
    digest = (await expanded(file)).bundle.digest
    assert (await expanded(file, bundle={"digest": digest})).bundle.digest == digest
    with pytest.raises(BundleMissing, match=f"sha256 {digest}, and not {'0' * 64}: upload"):
        await expanded(file, bundle={"digest": "0" * 64})


async def test_who_asks_for_the_same_waits_for_one_thread(file: Path, planned: list[int]) -> None:
    """Planning may take a second, in which the loop goes on: the lease is to be renewed."""
    ours = expander()
    one, *others = await asyncio.gather(
        *(ours.expand_submitted(job(file), widths) for widths in ({}, {}, {"gone": 2}))
    )
    assert all(item is one for item in others)
    (thread,) = planned
    assert thread != threading.get_ident()
    assert (await ours.expand_submitted(job(file), {"r": 2})).topology.regions[0].width == 2
    assert len(planned) == 2


async def test_who_is_cancelled_leaves_the_others_their_turn(
    file: Path, planned: list[int]
) -> None:
    ours = expander()
    calls = [asyncio.create_task(ours.expand_submitted(job(file), {})) for _ in range(3)]
    while not planned:
        await asyncio.sleep(0)
    calls[0].cancel()
    assert len((await asyncio.gather(*calls[1:]))[0].topology.pes) == 3


async def test_what_can_not_be_planned_is_planned_once(file: Path, planned: list[int]) -> None:
    """It is asked for again and again; another edit is another question."""
    ours, refused = expander(), job(file, parameters={"sped": "9"})
    for _ in range(3):
        with pytest.raises(GraphError, match="no parameter sped"):
            await ours.expand_submitted(refused, {})
    assert len(planned) == 1
    refused["metadata"]["generation"] = 2
    with pytest.raises(GraphError, match="no parameter sped"):
        await ours.expand_submitted(refused, {})
    assert len(planned) == 2


async def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleMissing, match="shared volume"):
        await expanded(tmp_path / "gone.zip")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/proc", "fifo", "huge"])
async def test_what_is_no_regular_file_is_not_read(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(1 << 40)
    with pytest.raises(BundleCorrupt, match="no regular file of at most 256 MiB"):
        await expanded(tmp_path / path)


async def test_a_volume_that_hangs_holds_up_no_other_job(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that wait for NFS are none of those that plan; who asks again is told at once."""
    answers, asked = threading.Event(), []
    stat = Path.stat

    def slow(path: Path, **options: Any) -> os.stat_result:
        if path.parent.name == "slow":
            asked.append(path.name)
            answers.wait()
            path = file
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", slow)
    monkeypatch.setattr(external_calls, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(Path, "read_bytes", lambda _: bundle(application("topics")))
    ours = expander()
    jobs = [job(tmp_path / "slow" / str(number)) for number in range(12)]
    for number, waiting in enumerate(jobs):
        waiting["metadata"] |= {"namespace": f"ns-{number}"}
    try:
        for waiting in (*jobs, *jobs):
            with pytest.raises(BundleAwaited, match=r"slow/\d+ is on has not answered yet"):
                await ours.expand_submitted(waiting, {})
        assert len(asked) == 12
        monkeypatch.setattr(external_calls, "PATIENCE_SECONDS", 5.0)
        assert (await ours.expand_submitted(job(file), {})).topology.pes
    finally:
        answers.set()
    await asyncio.sleep(0.2)
    assert (await ours.expand_submitted(jobs[0], {})).topology.pes


async def test_submission_time_values_override_defaults(file: Path) -> None:
    expansion = await expanded(file, parameters={"speed": "9"})
    assert {pe.metadata.parameters["speed"] for pe in expansion.topology.pes} == {"9"}
    with pytest.raises(GraphError, match="no parameter sped"):
        await expanded(file, parameters={"sped": "9"})


async def test_what_a_bundle_was_built_with_is_noted_with_the_job(tmp_path: Path) -> None:
    """Edits are judged by what its ConfigMap notes, though no PE notices a difference."""
    adl = application("topics")
    columns = {"key": [{"name": "key", "type": "string"}], "value": []}
    adl["operators"][1] |= {"state": [{"operator": "dedupe", **columns}], "code": "c"}
    found = []
    for number, built in enumerate(({"speed": "1"}, {"speed": "9"}, {})):
        adl["operators"][1]["parameters"] = built
        path = tmp_path / f"{number}.zip"
        path.write_bytes(bundle(adl))
        found.append(await expanded(path, parameters={"speed": "9"}))
    assert len({item.content_id for item in found}) == 3
    first, *others = ([pe.content for pe in item.topology.pes] for item in found)
    assert others == [first, first]
