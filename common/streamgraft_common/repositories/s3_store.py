"""A store in a bucket of S3, or of what speaks like it. `If-None-Match: *` is the fence."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store as Bucket

from streamgraft_common.repositories.store import (
    Credentials,
    Missing,
    RepositoryUnavailable,
    Stored,
)
from streamgraft_common.resources import S3Repository

_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 60
"""A piece of a file has this time on its way."""
_RETRY_SECONDS = 15


class S3Store:
    """Each key is an object below the prefix."""

    def __init__(self, settings: S3Repository, credentials: Credentials) -> None:
        """Raises ValueError if the credentials make no sense."""
        self._name = f"s3://{settings.bucket}/{settings.prefix}".rstrip("/")
        options: dict[str, Any] = {
            "region": settings.region or "us-east-1",
            "endpoint": settings.endpoint,
            "access_key_id": credentials.get("access-key-id"),
            "secret_access_key": credentials.get("secret-access-key"),
            "session_token": credentials.get("session-token"),
        }
        client: dict[str, Any] = {
            "allow_http": (settings.endpoint or "").startswith("http://"),
            "connect_timeout": f"{_CONNECT_SECONDS}s",
            "timeout": f"{_ANSWER_SECONDS}s",
        }
        if authority := credentials.get("ca.crt"):
            client["root_certificate"] = authority
        try:
            self._bucket = Bucket(
                settings.bucket,
                prefix=settings.prefix or None,
                client_options=client,  # type: ignore[arg-type]
                retry_config={"max_retries": 3, "retry_timeout": _seconds(_RETRY_SECONDS)},
                **{name: value for name, value in options.items() if value},
            )
        except BaseError as error:
            raise ValueError(f"{self._name}: {_first_line(error)}") from error

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever was there."""
        with self._answering():
            obstore.put(self._bucket, key, data, use_multipart=False)

    def create(self, key: str, data: bytes) -> bool:
        """Write if there is nothing of the key; False if there is."""
        with self._answering():
            try:
                obstore.put(self._bucket, key, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def get(self, key: str) -> bytes:
        """Return what was written. Raises Missing."""
        with self._answering():
            try:
                return bytes(obstore.get(self._bucket, key).bytes())
            except (NotFoundError, FileNotFoundError):
                raise Missing(key) from None

    def keys(self, prefix: str, *, complete: bool = False) -> list[Stored]:
        """Return all keys that begin so: always all of them."""
        with self._answering():
            return [
                Stored(item["path"], item["last_modified"].timestamp())
                for some in obstore.list(self._bucket, prefix)
                for item in some
            ]

    def delete(self, keys: Sequence[str]) -> None:
        """Remove what is there of them."""
        with self._answering():
            if keys:
                obstore.delete(self._bucket, list(keys))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise RepositoryUnavailable(f"{self._name}: {_first_line(error)}") from error


def _seconds(number: int) -> Any:
    from datetime import timedelta

    return timedelta(seconds=number)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
