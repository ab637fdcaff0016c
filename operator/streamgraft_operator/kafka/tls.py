"""How the operator itself talks to the brokers of a job that has transport security."""

import base64
import binascii

from streamgraft_common.kafka_credentials import KEYS, KafkaCredentials
from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_operator.kafka.client import KafkaUnavailable, Options
from streamgraft_operator.kit.parsed import job_spec
from streamgraft_operator.settings import Settings


class KafkaTls:
    """Reads the Secrets that jobs name for their brokers, each time anew: they are rotated."""

    def __init__(self, client: KubeClient, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def of(self, job: Object) -> Options:
        """Return the settings for the job's brokers; none without transport security.

        Raises KafkaUnavailable if the Secret is missing or malformed.
        """
        security = self._settings.security_of(job_spec(job))
        if not security.encrypted:
            return ()
        name, data = security.kafka_secret, {}
        if name:
            data = await self._data(job["metadata"]["namespace"], name)
        try:
            return tuple(KafkaCredentials.parse(data).librdkafka().items())
        except ValueError as error:
            raise KafkaUnavailable(f"Secret {name} has {error}") from error

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
            return {key: base64.b64decode(data[key]).decode() for key in KEYS if key in data}
        except (binascii.Error, UnicodeDecodeError) as error:
            raise KafkaUnavailable(f"Secret {name} holds no text: {error}") from error
