"""The store that a job's settings name."""

from pathlib import Path

from streamgraft_common.repositories.store import Credentials, Store
from streamgraft_common.resources import CheckpointRepository


def open_store(
    settings: CheckpointRepository | None, namespace: str, credentials: Credentials, copies: Path
) -> Store | None:
    """Return where copies are kept as well, None if nowhere.

    `copies`: where the volume of that name is mounted. Raises ValueError if the credentials make no
    sense. The clients are imported only where they are needed.
    """
    if settings is None or not settings.keeps_copies:
        return None
    if settings.s3:
        from streamgraft_common.repositories.s3_store import S3Store

        return S3Store(settings.s3, credentials)
    if settings.redis:
        from streamgraft_common.repositories.redis_store import RedisStore

        return RedisStore(settings.redis, namespace, credentials)
    from streamgraft_common.repositories.file_store import FileStore

    return FileStore(copies)
