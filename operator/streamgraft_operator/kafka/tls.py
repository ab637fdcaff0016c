"""How the operator itself talks to the brokers of a job that has transport security."""

import base64
import binascii

from streamgraft_common.kafka_credentials import KEYS, KafkaCredentials
from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_operator.kafka.client import KafkaUnavailable, Options
from streamgraft_operator.kit.parsed import job_spec
from streamgraft_operator.kit.remembered import Remembered
from streamgraft_operator.settings import Settings


class KafkaTls:
    """Reads the Secrets that jobs name for their brokers, each time anew: they are rotated. What
    they said last serves to delete a job's topics once they are gone."""

    def __init__(self, client: KubeClient, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._remembered: Remembered[Options] = Remembered()

    async def of(self, job: Object) -> Options:
        """Return the settings for the job's brokers; none without transport security.

        Raises KafkaUnavailable if the Secret is missing or malformed.
        """
        security = self._settings.security_of(job_spec(job))
        if not security.encrypted:
            return ()
        if not (name := security.kafka_secret):
            return _options({})
        key = job["metadata"]["namespace"], name
        try:
            item = await self._client.get(SECRET.of(key))
        except NotFound as error:
            known = self._remembered.get(key)
            if known is not None and "deletionTimestamp" in job["metadata"]:
                return known
            raise KafkaUnavailable(
                f"there is no Secret {name}, which transportSecurity.kafkaSecret names: create it,"
                " and the job goes on by itself"
            ) from error
        try:
            options = _options(_texts(name, item.get("data") or {}))
        except ValueError as error:
            raise KafkaUnavailable(f"Secret {name} has {error}") from error
        self._remembered.note(key, options)
        return options


def _options(data: dict[str, str]) -> Options:
    """Return what the clients of Kafka are told. Raises ValueError."""
    return tuple(KafkaCredentials.parse(data).librdkafka().items())


def _texts(name: str, data: dict[str, str]) -> dict[str, str]:
    try:
        return {key: base64.b64decode(data[key]).decode() for key in KEYS if key in data}
    except (binascii.Error, UnicodeDecodeError) as error:
        raise KafkaUnavailable(f"Secret {name} holds no text: {error}") from error
