"""What the operator shows brokers, also once the Secret that says so is gone."""

from base64 import b64encode

import pytest

from streamgraft_common.kube import KubeClient, KubeConfig, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kafka.client import KafkaUnavailable
from streamgraft_operator.kafka.tls import KafkaTls
from streamgraft_operator.kit import remembered
from streamgraft_operator.settings import Settings

SETTINGS = Settings(bootstrap_servers="", checkpoint_volume={}, image="")


class Secrets(KubeClient):
    """A cluster of Secrets alone: texts by path."""

    def __init__(self) -> None:
        super().__init__(KubeConfig("http://127.0.0.1:1"))
        self.there: dict[str, dict[str, str]] = {}

    async def get(self, path: str, **query: str) -> Object:
        """Return a Secret."""
        if path not in self.there:
            raise NotFound(404, "NotFound", path)
        texts = self.there[path].items()
        return {"data": {key: b64encode(text.encode()).decode() for key, text in texts}}

    def put(self, namespace: str, password: str) -> None:
        """Make the Secret that jobs name, or replace it."""
        path = f"/api/v1/namespaces/{namespace}/secrets/kafka"
        self.there[path] = {"username": "streamgraft", "password": password}


def job(namespace: str = "ns", *, deleted: bool = False) -> Object:
    security = {"type": "TLS", "kafkaSecret": "kafka"}
    spec = {"bundle": {"file": "/b"}, "transportSecurity": security}
    found = JOB.manifest("job", namespace, spec)
    if deleted:
        found["metadata"]["deletionTimestamp"] = to_rfc3339(0)
    return found


async def password(tls: KafkaTls, of: Object) -> str | None:
    return dict(await tls.of(of)).get("sasl.password")


async def test_a_job_that_is_deleted_goes_on_with_what_its_secret_said_last() -> None:
    """The deletion of a namespace takes the Secret first."""
    secrets = Secrets()
    tls = KafkaTls(secrets, SETTINGS)
    for text in ("old", "new"):
        secrets.put("ns", text)
        assert await password(tls, job()) == text
    secrets.there.clear()
    assert await password(tls, job(deleted=True)) == "new"
    with pytest.raises(KafkaUnavailable, match="there is no Secret kafka"):
        await tls.of(job())
    with pytest.raises(KafkaUnavailable):
        await tls.of(job("other", deleted=True))
    with pytest.raises(KafkaUnavailable):
        await KafkaTls(secrets, SETTINGS).of(job(deleted=True))


async def test_only_the_secrets_that_were_read_last_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remembered, "MOST", 2)
    secrets = Secrets()
    tls = KafkaTls(secrets, SETTINGS)
    for namespace in ("a", "b", "a", "c"):
        secrets.put(namespace, namespace)
        await tls.of(job(namespace))
    secrets.there.clear()
    assert await password(tls, job("a", deleted=True)) == "a"
    assert await password(tls, job("c", deleted=True)) == "c"
    with pytest.raises(KafkaUnavailable):
        await tls.of(job("b", deleted=True))
