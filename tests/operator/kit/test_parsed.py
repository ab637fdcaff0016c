"""Resources as models: what changed is read anew."""

from streamgraft_common.resources import JobStatus
from streamgraft_operator.kit.parsed import Reader


def job(generation_id: int) -> dict[str, object]:
    return {
        "metadata": {"namespace": "ns", "name": "job"},
        "status": {"generationId": generation_id},
    }


def test_each_version_is_read_once() -> None:
    read = Reader(JobStatus, "status")
    first = job(1)
    assert read(first) is read(first)
    assert read(job(2)).generation_id == 2
    assert read(first).generation_id == 1


def test_another_object_of_the_same_name_without_status() -> None:
    read = Reader(JobStatus, "status")
    assert read(job(1)).generation_id == 1
    assert read({"metadata": {"namespace": "ns", "name": "job"}}).generation_id == 0
