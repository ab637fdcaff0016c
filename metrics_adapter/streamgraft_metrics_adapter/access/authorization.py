"""May the caller do this: SubjectAccessReview, with a short memory."""

import asyncio
import time

from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_metrics_adapter.access.attributes import Attributes
from streamgraft_metrics_adapter.access.authentication import User
from streamgraft_metrics_adapter.access.shares import Rate
from streamgraft_metrics_adapter.status import ForbiddenError, UnavailableError

_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ALLOWED_SECONDS, _DENIED_SECONDS = 10.0, 5.0
_DECISIONS = 10_000
_REVIEWS, _REVIEWS_PER_SECOND = 300.0, 100.0
"""That one user may cause."""


class Authorizer:
    """Asks the API server, and remembers: 10 s what is allowed, 5 s what is not.

    An access to one object is asked for all objects of the cluster first, then for those of its
    namespace, then for itself: what is allowed widely is so for each. An autoscaler of thousands of
    objects then costs the API server one review per metric and ten seconds.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._reviews = Rate("different requests of yours", _REVIEWS, _REVIEWS_PER_SECOND)
        self._decisions: dict[
            tuple[User, Attributes], tuple[float, asyncio.Future[str | None]]
        ] = {}

    async def check(self, user: User, attributes: Attributes) -> None:
        """Return if it is allowed.

        Raises ForbiddenError, TooManyError if the user asks for too many different things, or
        UnavailableError if the API server can't tell.
        """
        denial: str | None = None
        for wider in attributes.from_widest():
            denial = await self._decision(user, wider)
            if denial is None:
                return
        raise ForbiddenError(denial or "")

    async def _decision(self, user: User, attributes: Attributes) -> str | None:
        """Return why it is denied, or None; those who ask at the same time wait for one review."""
        key = user, attributes
        known = self._decisions.get(key)
        if known and known[0] > time.monotonic():
            return known[1].result() if known[1].done() else await asyncio.shield(known[1])
        self._reviews.acquire(user.name)
        self._decisions.pop(key, None)
        if len(self._decisions) >= _DECISIONS:
            del self._decisions[next(iter(self._decisions))]
        pending = asyncio.ensure_future(self._review(user, attributes))
        self._decisions[key] = time.monotonic() + _ALLOWED_SECONDS, pending
        pending.add_done_callback(lambda done: self._remember(key, done))
        return await asyncio.shield(pending)

    def _remember(self, key: tuple[User, Attributes], done: "asyncio.Future[str | None]") -> None:
        known = self._decisions.get(key)
        if known is None or known[1] is not done:
            return
        if done.cancelled() or done.exception():
            del self._decisions[key]
        elif done.result() is not None:
            self._decisions[key] = time.monotonic() + _DENIED_SECONDS, done

    async def _review(self, user: User, attributes: Attributes) -> str | None:
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.everyone()),
            "extra": {key: list(values) for key, values in user.extra},
            **attributes.to_wire(),
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        try:
            status = (await self._client.create(_PATH, body)).get("status", {})
        except (ApiError, Unreachable) as error:
            raise UnavailableError(f"access can't be reviewed: {error}") from error
        if status.get("allowed"):
            return None
        return f'User "{user.name}" cannot {attributes}: {status.get("reason") or "not allowed"}'
