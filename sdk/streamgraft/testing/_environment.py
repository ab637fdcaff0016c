"""The embedded environment of one test session, and the end of those that were left behind.

A session holds the lock of a file beside its environment's folder. The lock ends with the session's
process, also if that is killed, and what it has started does not inherit it: an environment whose
lock is free has no session any more.
"""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamgraft_local import Cluster, ClusterSpec
from streamgraft_local.locks import exclusive, taken


@contextmanager
def session_environment() -> Iterator[Cluster]:
    """End environments that sessions left behind, start a new one, and end it afterwards."""
    own = ClusterSpec(name=f"pytest-{uuid.uuid4().hex[:8]}")
    folder = own.home.root.parent
    with ExitStack() as locks:
        # Between a file's creation and its lock another session would take it for abandoned.
        with exclusive(folder / ".pytest.lock"):
            abandoned = list(_abandoned(folder, locks))
            locks.enter_context(exclusive(_owner_file(own)))
        cluster = Cluster(own)
        try:
            for spec in abandoned:
                _end(spec)
            cluster.up()
            yield cluster
        finally:  # what began to start before it failed or was interrupted ends as well
            _end(own)


def _abandoned(folder: Path, locks: ExitStack) -> Iterator[ClusterSpec]:
    """Yield the environments without a session, whose locks we hold from now on."""
    for file in folder.glob("pytest-*.owner"):
        if lock := taken(file):
            locks.enter_context(lock)
            yield ClusterSpec(name=file.stem)


def _owner_file(spec: ClusterSpec) -> Path:
    # Not in the folder: whoever is killed while he removes that leaves something to find.
    return spec.home.root.with_name(f"{spec.name}.owner")


def _end(spec: ClusterSpec) -> None:
    Cluster(spec).down(delete=True)
    _owner_file(spec).unlink(missing_ok=True)
