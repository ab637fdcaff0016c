"""What changes the code of a PE, and what does not."""

from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, Stream
from streamgraft_common.code import code_of

OF_FORMER_RELEASES = "ccdd42f33922d977"


def code(required: list[str] | None) -> str:
    kafka = KafkaEndpoint(topic="t", required=required)
    adl = Adl(
        name="a",
        built_by="test",
        module="m",
        application="app",
        operators=[Operator(name="read", kind="kafka-source", outputs=["read"], kafka=kafka)],
        streams=[Stream(name="read", producer="read", schema={"type": "struct", "fields": []})],
        regions=[],
    )
    return code_of(adl, "digest", ["read"])


def test_pods_of_a_former_release_run_the_same_code_behind_an_upgrade() -> None:
    """They know no columns that are NOT NULL, and a source without any is as it was."""
    assert code(None) == OF_FORMER_RELEASES


def test_what_is_required_of_records_is_code() -> None:
    assert len({code(None), code(["id"]), code(["id", "at"])}) == 3
