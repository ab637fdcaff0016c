"""How the operator itself talks to the brokers of a job that has transport security."""

import base64
import binascii

from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_operator.kafka.client import KafkaUnavailable, Options
from streamgraft_operator.kit.parsed import job_spec

_OPTIONS = {
    "ca.crt": "ssl.ca.pem",
    "tls.crt": "ssl.certificate.pem",
    "tls.key": "ssl.key.pem",
}


class KafkaTls:
    """Reads the Secrets that jobs name for their brokers, each time anew: they are rotated."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def of(self, job: Object) -> Options:
        """Return the settings for the job's brokers; none without transport security.

        Raises KafkaUnavailable if the Secret is missing or malformed.
        """
        security = job_spec(job).transport_security
        if not security.encrypted:
            return ()
        options = [("security.protocol", "ssl")]
        if security.kafka_secret:
            data = await self._data(job["metadata"]["namespace"], security.kafka_secret)
            options += [(option, data[key]) for key, option in _OPTIONS.items() if key in data]
        return tuple(options)

    async def _data(self, namespace: str, name: str) -> dict[str, str]:
        try:
            item = await self._client.get(SECRET.path(namespace, name))
        except NotFound as error:
            raise KafkaUnavailable(
                f"there is no Secret {name}, which transportSecurity.kafkaSecret names: create it,"
                " and the job goes on by itself"
            ) from error
        data = item.get("data") or {}
        try:
            return {key: base64.b64decode(data[key]).decode() for key in _OPTIONS if key in data}
        except (binascii.Error, UnicodeDecodeError) as error:
            raise KafkaUnavailable(f"Secret {name} holds no PEM text: {error}") from error
