"""Takes, renews and gives up the lease of one replica."""

import asyncio
import contextlib
import logging
import time

from streamgraft_common.kinds import LEASE
from streamgraft_common.kube import ApiError, Conflict, KubeClient, NotFound, Store, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, version_of
from streamgraft_operator.kit.leadership.lease import Term, claimed, free_in, holder, released

log = logging.getLogger(__name__)


class Elector:
    """One replica's claim to a lease. `client` is not fenced and serves nothing else."""

    def __init__(self, client: KubeClient, lease: Key, identity: str, term: Term) -> None:
        self._client = client
        self._key = lease
        self._identity = identity
        self._term = term
        self._lease: Object = {}
        self._until = 0.0

    def leading(self) -> bool:
        """Return whether this replica may write now, to any thread."""
        return time.monotonic() < self._until

    async def acquire(self) -> None:
        """Return when the lease is ours.

        A lease that is given up is taken as soon as the watch says so, one that is no longer
        renewed when its time is over.
        """
        namespace, name = self._key
        store = Store(self._client, LEASE.path(namespace), fieldSelector=f"metadata.name={name}")
        changed = asyncio.Event()
        store.listen(lambda *_: changed.set())
        watching = asyncio.ensure_future(store.run())
        try:
            await store.synced.wait()
            seen, since = -1, 0.0
            while True:
                changed.clear()
                lease = store.get(self._key)
                if (version := version_of(lease) if lease else 0) != seen:
                    seen, since = version, time.monotonic()
                wait = free_in(lease, time.monotonic() - since) if lease else 0.0
                if wait <= 0.0:
                    if await self._try_claim(lease):
                        return
                    wait = self._term.renew_every
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), wait)
        finally:
            watching.cancel()

    async def hold(self) -> None:
        """Renew the lease; return when it is lost. From then on `leading` is False."""
        while self.leading():
            try:
                async with asyncio.timeout_at(self._until):
                    await asyncio.sleep(self._term.renew_every)
                    await self._renew()
            except TimeoutError:
                log.error("the lease could not be renewed in time")
            except (ApiError, Unreachable) as error:
                log.warning("can't renew the lease: %s", error)

    async def release(self) -> None:
        """Give the lease up, if it is ours, so that the next replica starts at once."""
        if not self.leading():
            return
        self._until = 0.0
        try:
            await self._client.replace(LEASE.of(self._key), released(self._lease))
        except (ApiError, Unreachable) as error:
            log.warning("can't give up the lease, the next leader has to wait: %s", error)

    async def _try_claim(self, known: Object | None) -> bool:
        try:
            await self._claim(known)
        except (ApiError, Unreachable) as error:
            if not isinstance(error, Conflict):  # then another replica was quicker
                log.warning("can't take the lease %s/%s: %s", *self._key, error)
            return False
        return True

    async def _renew(self) -> None:
        try:
            await self._claim(self._lease)
        except NotFound:  # somebody deleted it
            await self._claim(None)
        except Conflict:
            self._lease = await self._client.get(LEASE.of(self._key))
            if holder(self._lease) != self._identity:
                log.error("the lease went to %s", holder(self._lease) or "nobody")
                self._until = 0.0

    async def _claim(self, known: Object | None) -> None:
        """Write our claim over exactly this version; None: there is no lease."""
        begun = time.monotonic()
        namespace, name = self._key
        fresh = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": name, "namespace": namespace},
        }
        manifest = claimed(known or fresh, self._identity, self._term, time.time())
        if known is None:
            self._lease = await self._client.create(LEASE.path(namespace), manifest)
        else:
            self._lease = await self._client.replace(LEASE.of(self._key), manifest)
        self._until = begun + self._term.renew_within
