"""What a failed query says, in a form that fits into a status, and what to do. Pure."""

import re
from dataclasses import dataclass

_MAX_LENGTH = 400
FENCED = ("CONCURRENT_STREAM_LOG_UPDATE", "another owner writes under this transactional id")
"""By the checkpoint, by Kafka."""
_WRAPPED = "org.apache.spark.sql.streaming.StreamingQueryException: "
_LOST = "data may have been lost because they are not available in Kafka any more"
_LOST_ADVICE = (
    "Kafka no longer has the records that come next: the topic was deleted, or keeps them for too"
    " short a time. To go on without them, set failOnDataLoss to false: of a stream between"
    " processing elements in the Job's spec, of a source among its options; to read sources from"
    " their start, cancel the job and submit it again"
)
_ANOTHER = (
    "is another topic of that name than the one that was read, so positions mean nothing in it:"
    " nothing is read."
)
_SOURCE_ADVICE = (
    "To read it from its start, cancel the job and submit it again; to keep state, do so from a"
    " savepoint, with another name for the source (and allowDroppedState)"
)
REPLACED = f"{_ANOTHER} {_SOURCE_ADVICE}"
"""What is said of a source's topic behind its name."""
STREAM_REPLACED = (
    f"{_ANOTHER} It is a stream of the job: roll back the consistent region that it is within, or"
    " cancel the job and submit it again, from a savepoint to keep state"
)
"""The same for a stream between PEs."""
_EITHER_REPLACED = (
    f"a topic was deleted, or {_ANOTHER} {_SOURCE_ADVICE}. If it is a stream of the job, roll back"
    " the consistent region that it is within"
)
"""The same where Spark does not say which topic it is, so that it may be either."""
_OTHER_TOPIC = ("KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED", "KAFKA_DATA_LOSS.PARTITIONS_DELETED")
"""What Spark says where a log ends before the position, or is not there. To go on without failing
would skip records of the new topic, and nobody would count them."""
_NO_TOPIC = re.compile(r"Topic (\S+) not present in metadata after (\d+) ms")
_NO_NOTE = re.compile(r"Timeout expired after (\d+) ?ms while awaiting AddOffsetsToTxn")
"""What Kafka's producer says when it gives up; of the ledger it does not name the topic."""
_CHECKPOINT = (
    (
        "CheckpointTooNew",
        ("INVALID_LOG_VERSION",),
        "the checkpoint was written by a newer version; nothing is overwritten. Give the job that"
        " version's image again, or restore a savepoint that this one took",
    ),
    (
        "CheckpointDamaged",
        (
            "the checkpoint is damaged",
            "CANNOT_LOAD_STATE_STORE",
            "Failed to read log file",
            "StateSchemaCompatibilityChecker",
        ),
        "the checkpoint is damaged; nothing is overwritten. Put the file back from a copy of the"
        " volume, or restore a savepoint",
    ),
)
"""Reason, what Spark or the runtime says, and what to do."""
_SAID = (
    ("Fenced", FENCED),
    ("TransactionalIdTaken", ("another query has written under this transactional id",)),
    ("CheckpointPutBack", ("the checkpoint was put back",)),
    ("TopicReplaced", (_ANOTHER,)),
    ("LedgerLost", ("is gone: deleted, or expired",)),
    ("RecordTooLarge", ("a record is too large for its topic",)),
    ("OtherColumns", ("gives other columns than the bundle says",)),
    ("OtherStreams", ("reads a stream that is none of its inputs",)),
    ("NotAuthorized", ("not allowed to use", "not allowed to commit")),
)
"""Reason, and what the sink says; its message says what to do."""
_PYTHON_ERROR = re.compile(r"^\w[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*$")
_JAVA_CAUSE = re.compile(r"^(?:Caused by|Cause): (.+)$")
_FILE = re.compile(r"(?:file:)?(/[^\s:,;()]+?)\.?(?=[\s:,;()]|$)")


@dataclass(frozen=True)
class Failure:
    """Why a query ended."""

    reason: str
    """CamelCase, for conditions."""
    message: str
    """What happened, and what to do if that is known."""


def is_fenced(text: str) -> bool:
    """Return whether the query ended because the shard has another owner, who writes."""
    return any(sign in text for sign in FENCED)


def explained(text: str) -> Failure:
    """Return what an exception of a query amounts to."""
    for reason, signs, advice in _CHECKPOINT:
        if any(sign in text for sign in signs):
            return Failure(reason, _of_checkpoint(text, advice))
    if any(sign in text for sign in _OTHER_TOPIC):
        return Failure("TopicReplaced", _EITHER_REPLACED)
    if _LOST in text:
        return Failure("RecordsLost", _LOST_ADVICE)
    if errors := _python_errors(text):
        return Failure("ApplicationFailed", errors[-1][:_MAX_LENGTH])
    if missing := _NO_TOPIC.search(text):
        return Failure("TopicMissing", _no_topic(*missing.groups()))
    if untaken := _NO_NOTE.search(text):
        return Failure("LedgerUnavailable", _no_note(untaken[1]))
    reasons = (reason for reason, signs in _SAID if any(sign in text for sign in signs))
    return Failure(next(reasons, "QueryFailed"), _telling(text)[:_MAX_LENGTH])


def summary(text: str) -> str:
    """Return the most telling line of an exception, and what to do if that is known.

    The innermost Python error if there is one (user code), else the innermost Java cause, else
    the first line.
    """
    return explained(text).message


def _no_topic(topic: str, millis: str) -> str:
    return (
        f"the brokers have had no topic {topic} for {int(millis) / 1000:.0f} s: it was deleted."
        " Create it again; the operator does that where it may, within a minute"
    )


def _no_note(millis: str) -> str:
    return (
        f"the brokers have not taken the ledger's entry for {int(millis) / 1000:.0f} s: they are"
        " away, or its topic was deleted. That is <namespace>.<job>.REHEARSAL, which the operator"
        " makes again within a minute; of a sink with brokers or options of its own, the sink's"
    )


def _of_checkpoint(text: str, advice: str) -> str:
    """Return the advice with the file that it is about, and with what is wrong with it."""
    causes = "\n".join(line for line in _lines(text) if _JAVA_CAUSE.match(line))
    named = _FILE.search(causes) or _FILE.search(text)
    file = f"{named[1]}: " if named else ""
    told = _telling(text).removeprefix("the checkpoint is damaged: ").removeprefix(file)
    return f"{file}{advice} ({told})"[:_MAX_LENGTH]


def _telling(text: str) -> str:
    lines = _lines(text)
    causes = [match[1] for line in lines if (match := _JAVA_CAUSE.match(line))]
    chosen = (causes or lines[:1] or ["unknown error"])[-1]
    return chosen.removeprefix(_WRAPPED)


def _python_errors(text: str) -> list[str]:
    """Return the last lines of tracebacks, which are of user code."""
    return [
        line for line in _lines(text) if _PYTHON_ERROR.match(line) and not line.startswith("org.")
    ]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
