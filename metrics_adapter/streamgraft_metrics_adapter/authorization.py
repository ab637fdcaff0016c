"""May the caller do this: SubjectAccessReview, with a short memory."""

import json
import time
from typing import Any

from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_metrics_adapter.authentication import User
from streamgraft_metrics_adapter.request_info import Attributes
from streamgraft_metrics_adapter.status import ForbiddenError, UnavailableError

_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ALLOWED_SECONDS, _DENIED_SECONDS = 10.0, 5.0
_DECISIONS = 10_000


class Authorizer:
    """Asks the API server, and remembers: 10 s what is allowed, 5 s what is not."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._decisions: dict[str, tuple[float, str | None]] = {}

    async def check(self, user: User, attributes: Attributes) -> None:
        """Return if it is allowed.

        Raises ForbiddenError, or UnavailableError if the API server can't tell.
        """
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.everyone()),
            "extra": {key: list(values) for key, values in user.extra.items()},
            **attributes,
        }
        key = json.dumps(spec, sort_keys=True)
        known = self._decisions.get(key)
        if known and known[0] > time.monotonic():
            denial = known[1]
        else:
            denial = await self._review(user, spec)
            self._remember(key, denial)
        if denial is not None:
            raise ForbiddenError(denial)

    def _remember(self, key: str, denial: str | None) -> None:
        if len(self._decisions) >= _DECISIONS:
            self._decisions.clear()
        seconds = _ALLOWED_SECONDS if denial is None else _DENIED_SECONDS
        self._decisions[key] = time.monotonic() + seconds, denial

    async def _review(self, user: User, spec: dict[str, Any]) -> str | None:
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
        return f'User "{user.name}" {_wish(spec)}: {status.get("reason") or "not allowed"}'


def _wish(spec: dict[str, Any]) -> str:
    if path := spec.get("nonResourceAttributes"):
        return f'cannot {path["verb"]} path "{path["path"]}"'
    wish = spec["resourceAttributes"]
    parts = [wish["resource"], *([wish["subresource"]] if "subresource" in wish else [])]
    place = f' in the namespace "{wish["namespace"]}"' if "namespace" in wish else ""
    return f'cannot {wish["verb"]} "{"/".join(parts)}" in API group "{wish["group"]}"{place}'
