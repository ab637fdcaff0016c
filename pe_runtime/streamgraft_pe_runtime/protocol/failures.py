"""What a failed query says, in a form that fits into a status. Pure."""

import re

_MAX_LENGTH = 400
FENCED = ("CONCURRENT_STREAM_LOG_UPDATE", "another owner writes under this transactional id")
"""By the checkpoint, by Kafka."""
_WRAPPED = "org.apache.spark.sql.streaming.StreamingQueryException: "
_LOST = "data may have been lost because they are not available in Kafka any more"
_LOST_ADVICE = (
    "Kafka no longer has the records that come next: the topic was deleted, or keeps them for too"
    " short a time. To go on without them, set the source's option failOnDataLoss to false; to"
    " read the topic from its start, cancel the job and submit it again"
)
_PYTHON_ERROR = re.compile(r"^\w[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*$")
_JAVA_CAUSE = re.compile(r"^(?:Caused by|Cause): (.+)$")


def is_fenced(text: str) -> bool:
    """Return whether the query ended because the shard has another owner, who writes."""
    return any(sign in text for sign in FENCED)


def summary(text: str) -> str:
    """Return the most telling line of an exception.

    The innermost Python error if there is one (user code), else the innermost Java cause, else
    the first line. If records are gone that were to be read, what to do.
    """
    if _LOST in text:
        return _LOST_ADVICE
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if _PYTHON_ERROR.match(line) and not line.startswith("org.")]
    causes = [match[1] for line in lines if (match := _JAVA_CAUSE.match(line))]
    chosen = (ours or causes or lines[:1] or ["unknown error"])[-1]
    return chosen.removeprefix(_WRAPPED)[:_MAX_LENGTH]
