"""A whole application on the embedded environment: records in, records out."""

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from streamgraft import _records as records
from streamgraft.cli import _cancel, _scale, _submit
from streamgraft.cli._options import Target
from streamgraft_common.adl import Adl
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

_SUBMIT_SECONDS = 180.0
_CANCEL_SECONDS = 300.0
_POLL_SECONDS = 0.2
_REQUEST_SECONDS = 10.0


@dataclass(frozen=True)
class LiveJob:
    """A job that runs. Rows are written to and read from the topics of its sources and sinks."""

    name: str
    namespace: str
    bootstrap_servers: str
    adl: Adl
    target: Target

    @classmethod
    @contextmanager
    def of(cls, cluster: Cluster, application: Path) -> Iterator["LiveJob"]:
        """Submit an application into a new namespace; cancel it, and delete both, at the end."""
        request = _submit.Request(application, create_topics=True)
        namespace = f"pytest-{uuid.uuid4().hex[:8]}"
        target = Target(kubeconfig=cluster.kubeconfig, namespace=namespace)
        _, adl = _submit.read_request(request)
        job = cls(_submit.job_name(request, adl), namespace, cluster.bootstrap_servers, adl, target)
        job._forget_topics()  # a test that was killed may have left some
        asyncio.run(_create_namespace(cluster, namespace))
        try:
            _submit.run(target, request, _SUBMIT_SECONDS)
            yield job
            _cancel.run(target, job.name, _CANCEL_SECONDS)
        finally:
            asyncio.run(_delete_namespace(cluster, namespace))
            job._forget_topics()

    def write(self, topic: str, rows: Sequence[Mapping[str, Any]], key: str | None = None) -> None:
        """Write rows as JSON records; `key`: the column whose text becomes the record's key."""
        records.write(self._settings, topic, rows, key)

    def read(
        self, topic: str, count: int, timeout_seconds: float = 60.0, settle_seconds: float = 3.0
    ) -> list[dict[str, Any]]:
        """Return the rows of a topic from its beginning, once there are `count` of them.

        `timeout_seconds`: how long it waits from one row to the next. `settle_seconds`: how long it
        looks for more rows behind the last; 0: not at all. Raises TimeoutError if there are fewer
        rows and AssertionError if there are more; both say what was there.
        """
        rows: list[dict[str, Any]] = []
        found = records.read(
            self._settings,
            topic,
            count=count,
            seconds=timeout_seconds,
            settle_seconds=settle_seconds,
        )
        try:
            for row in found:
                rows.append(row)
        except TimeoutError:
            waited = f"{len(rows)} rows after {timeout_seconds:g} s"
            raise TimeoutError(f"topic {topic} has {waited}, not {count}: {rows}") from None
        if len(rows) > count:
            raise AssertionError(f"topic {topic} has {len(rows)} rows, not {count}: {rows}")
        return rows

    @property
    def _settings(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap_servers, "group.id": f"{self.namespace}.test"}

    def scale(self, region: str, width: int) -> None:
        """Set the width of a region and wait until it serves. Raises CommandError."""
        _scale.run(self.target, self.name, region, width, _SUBMIT_SECONDS)

    def _forget_topics(self) -> None:
        topics = {operator.kafka.topic for operator in self.adl.operators if operator.kafka}
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        present = topics & set(admin.list_topics(timeout=_REQUEST_SECONDS).topics)
        for deleted in admin.delete_topics(sorted(present)).values() if present else ():
            deleted.result(_REQUEST_SECONDS)


async def _create_namespace(cluster: Cluster, namespace: str) -> None:
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        while not (await client.get(account))["items"]:  # pods need it
            await asyncio.sleep(_POLL_SECONDS)


async def _delete_namespace(cluster: Cluster, namespace: str) -> None:
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        await client.delete(f"/api/v1/namespaces/{namespace}")
