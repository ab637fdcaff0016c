"""What can go wrong in a call to the API server.

ApiError            an answer that is not success: `code`, `reason`, `message`
  Forbidden         403: the caller has no right to it
  NotFound          404
  Conflict          409: stale resource version, or the object exists already
  Gone              410: the watch is too old, list again
  Invalid           422: the schema or a rule rejects the object
Unreachable         no answer: connection refused, reset, or timed out
"""

from typing import Any


class ConfigError(Exception):
    """No usable configuration; the message says what to do."""


class ApiError(Exception):
    """An answer that is not success."""

    retry_after = 0.0
    """Seconds after which the server wants to be asked again; 0 if it did not say."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message

    @property
    def passes(self) -> bool:
        """Return whether asking again may help: the server is in trouble, or busy."""
        return self.code >= 500 or self.code == 429


class Forbidden(ApiError):
    """403: the caller has no right to it."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: stale resource version, or the object exists already."""


class Gone(ApiError):
    """410: the watch is too old, list again."""


class Invalid(ApiError):
    """422: the schema or a rule rejects the object."""


class Unreachable(Exception):
    """No answer: connection refused, reset, or timed out."""

    passes = True
    """Asking again may help, as with an `ApiError` that says so."""


_BY_CODE = {403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone, 422: Invalid}


def error_of(
    code: int, status: dict[str, Any] | None, text: str, retry_after: str | None = None
) -> ApiError:
    """Return the error of an answer: `status` is its Status object, if it had one.

    `retry_after`: the header of that name.
    """
    reason = str((status or {}).get("reason", "")) or "Unknown"
    message = str((status or {}).get("message", "")) or text[:500]
    error = _BY_CODE.get(code, ApiError)(code, reason, message)
    if retry_after and retry_after.isdecimal():
        error.retry_after = float(retry_after)
    return error
