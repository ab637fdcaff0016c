"""What a status says of a failed query."""

import pytest

from streamgraft_pe_runtime.protocol.failures import explained, is_fenced, summary
from streamgraft_pe_runtime.topic_ids import TopicReplaced

USER_ERROR = """\
org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query terminated
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown: Traceback:
  File "app.py", line 3, in check
ValueError: the service is out of order
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_user_errors_come_first() -> None:
    """Not Spark's wrapping of them."""
    assert summary(USER_ERROR) == "ValueError: the service is out of order"


def test_innermost_java_cause_otherwise() -> None:
    """Kafka's reason rather than Spark's."""
    text = "org.x.StreamException: failed\n\tat a.b(c)\nCaused by: A: one\nCaused by: B: two\n"
    assert summary(text) == "B: two"


def test_first_line_otherwise() -> None:
    """Whatever it is, and never too long for a status."""
    assert summary("boom\nat x") == "boom"
    assert summary("") == "unknown error"
    assert len(summary("x" * 10_000)) == 400


def test_records_that_are_gone() -> None:
    """Spark says it in a paragraph, of which the first line says little."""
    text = (
        "org.x.StreamingQueryException: Some data may have been lost because they are not available"
        " in Kafka any more; either the\n data was aged out by Kafka or the topic may have been"
    )
    assert "failOnDataLoss" in summary(text)
    assert len(summary(text)) <= 400


@pytest.mark.parametrize("kind", ["PARTITION_OFFSET_CHANGED", "PARTITIONS_DELETED"])
def test_another_topic_is_not_retention(kind: str) -> None:
    """Who lost records to retention may go on without them; here others would be skipped."""
    text = (
        f"org.x.StreamingQueryException: x.IllegalState: [KAFKA_DATA_LOSS.{kind}] Some"
        " data may have been lost because they are not available in Kafka any more; either the data"
        " was aged out. If you don't want your streaming query to fail on such cases, set the"
        " source option failOnDataLoss to false. Reason:\nPartition t-0"
    )
    said = explained(text)
    assert said.reason == "TopicReplaced"
    assert "failOnDataLoss" not in said.message
    assert "If it is a stream of the job, roll back the consistent region" in said.message
    assert "another name for the source" in said.message
    assert len(said.message) <= 400
    again = explained(str(TopicReplaced("t" * 100)))
    assert (again.reason, again.message[:100]) == ("TopicReplaced", "t" * 100)
    assert again.message.endswith("(and allowDroppedState)")


def test_fenced() -> None:
    """Another owner has written the same batch."""
    assert is_fenced("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log")
    assert is_fenced("NotExactlyOnce: n.j.s.0: another owner writes under this transactional id")
    assert not is_fenced(USER_ERROR)


def test_what_the_sink_says_is_shown_alone() -> None:
    """Spark only puts the name of its own exception before it."""
    text = "org.apache.spark.sql.streaming.StreamingQueryException: n.j.s.0: not allowed to"
    assert summary(text) == "n.j.s.0: not allowed to"


@pytest.mark.parametrize(
    ("text", "reason", "file"),
    [
        (
            "the checkpoint is damaged: /c/0/offsets/3: it does not begin with the version",
            "CheckpointDamaged",
            "/c/0/offsets/3",
        ),
        (
            "org.x.StreamingQueryException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error\n"
            "Caused by: java.io.IOException: Error reading delta file file:/c/0/state/4.delta of X",
            "CheckpointDamaged",
            "/c/0/state/4.delta",
        ),
        (
            "Failed to read log file file:/c/0/commits/3. [INVALID_LOG_VERSION.MAX] It was written"
            " by a newer version",
            "CheckpointTooNew",
            "/c/0/commits/3",
        ),
    ],
)
def test_checkpoints_that_cannot_be_read(text: str, reason: str, file: str) -> None:
    """Which file it is, and what to do."""
    said = explained(text)
    assert said.reason == reason
    assert said.message.startswith(f"{file}: ")
    assert "nothing is overwritten" in said.message
    assert "savepoint" in said.message
    assert len(said.message) <= 400


@pytest.mark.parametrize(
    ("text", "reason", "parts"),
    [
        (
            "org.x.StreamingQueryException: Cannot execute transactional method\n"
            "Caused by: org.x.KafkaException: we are in an error state\n"
            "Caused by: x.TimeoutException: Topic n.raw not present in metadata after 60000 ms.",
            "TopicMissing",
            ["no topic n.raw for 60 s", "deleted"],
        ),
        (
            "org.apache.spark.sql.streaming.StreamingQueryException: Timeout expired after 60000ms"
            " while awaiting AddOffsetsToTxn",
            "LedgerUnavailable",
            ["ledger's entry for 60 s", "deleted", "REHEARSAL"],
        ),
    ],
)
def test_topics_that_are_gone(text: str, reason: str, parts: list[str]) -> None:
    """Kafka's producer only says for how long it has waited."""
    said = explained(text)
    assert said.reason == reason
    assert all(part in said.message for part in parts)
    assert len(said.message) <= 400


def test_reasons() -> None:
    """Each kind has its own, for conditions."""
    sink = "org.apache.spark.sql.streaming.StreamingQueryException: n.j.s.0: "
    for text, reason in (
        (USER_ERROR, "ApplicationFailed"),
        (f"{sink}another query has written under this transactional id", "TransactionalIdTaken"),
        (f"{sink}the ledger (x) is gone: deleted, or expired. Whether", "LedgerLost"),
        ("not allowed to use transactional id n.j.s.0: the user needs Write", "NotAuthorized"),
        ("boom", "QueryFailed"),
    ):
        assert explained(text).reason == reason
