"""Errors as the Kubernetes API tells them: Status objects.

StatusError            any of them: `code`, `reason`, `message`
  BadRequestError      400
  UnauthorizedError    401
  ForbiddenError       403
  NotFoundError        404
  MethodNotAllowedError 405
  TooLargeError        413
  TooManyError         429
  UnavailableError     503: there is no value now; the HPA then holds
  TimedOutError        504
"""

from typing import Any, ClassVar


class StatusError(Exception):
    """An answer that is not success."""

    code: ClassVar[int]
    reason: ClassVar[str]

    def to_wire(self) -> dict[str, Any]:
        """Return the Status object."""
        return status(self.code, self.reason, str(self))


class BadRequestError(StatusError):
    """The request can't be understood."""

    code = 400
    reason = "BadRequest"


class UnauthorizedError(StatusError):
    """Nobody vouches for the caller."""

    code = 401
    reason = "Unauthorized"


class ForbiddenError(StatusError):
    """The caller may not do this."""

    code = 403
    reason = "Forbidden"


class NotFoundError(StatusError):
    """No such region or metric."""

    code = 404
    reason = "NotFound"


class MethodNotAllowedError(StatusError):
    """The resource has no such verb."""

    code = 405
    reason = "MethodNotAllowed"


class TooLargeError(StatusError):
    """The request is too large."""

    code = 413
    reason = "RequestEntityTooLarge"


class TooManyError(StatusError):
    """There are too many requests at once."""

    code = 429
    reason = "TooManyRequests"


class TimedOutError(StatusError):
    """It took too long."""

    code = 504
    reason = "Timeout"


class UnavailableError(StatusError):
    """There is no value now."""

    code = 503
    reason = "ServiceUnavailable"


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    """Return a Status object of a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
