"""Everything built or fetched, kept by a key of its inputs and complete or not there at all."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from streamgraft_local.locks import exclusive
from streamgraft_local.progress import Phase, Report, Step


def key_of(*inputs: str | bytes) -> str:
    """Return a short hash of inputs; the order counts, and where one ends and the next begins."""
    digest = hashlib.sha256()
    for part in inputs:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


class Cache:
    """The cache folder; two processes that want the same thing make it once."""

    def __init__(self, root: Path, report: Report) -> None:
        self.root = root
        self._report = report

    def get(self, kind: str, key: str, make: Callable[[Path], None], note: str) -> Path:
        """Return the folder `kind`/`key`; if it is missing, `make` fills a new one.

        Whatever `make` raises leaves nothing behind.
        """
        final = self.root / kind / key
        if final.exists():
            return final
        with exclusive(self.root / "locks" / f"{kind}-{key}"):
            if not final.exists():
                self._make(kind, final, make, note)
        return final

    def _make(self, kind: str, final: Path, make: Callable[[Path], None], note: str) -> None:
        self._report(Step(kind, Phase.STARTED, note))
        final.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".new-", dir=final.parent))
        try:
            make(work)
            work.rename(final)
        except BaseException as error:
            shutil.rmtree(work, ignore_errors=True)
            self._report(Step(kind, Phase.FAILED, str(error).partition("\n")[0]))
            raise
        self._report(Step(kind, Phase.DONE))
