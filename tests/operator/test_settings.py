"""The operator's settings: what holds for jobs that say nothing, and its command line."""

from pathlib import Path

import pytest

from streamgraft_common.resources import JobSpec, TransportSecurity
from streamgraft_operator.__main__ import arguments_of
from streamgraft_operator.settings import Settings

OURS = TransportSecurity(type="TLS", kafka_secret="kafka-client")
SETTINGS = Settings("kafka:9093", {}, "image", Path("/"), transport_security=OURS)
NEEDED = ("--bootstrap-servers=k:1", "--checkpoint-volume={}", "--image=i", "--metrics-port=1")


@pytest.mark.parametrize(
    ("spec", "secret"),
    [
        ({}, "kafka-client"),
        ({"bootstrapServers": "other:9092"}, None),
        ({"transportSecurity": {"type": "None"}}, None),
        ({"transportSecurity": {"type": "TLS", "kafkaSecret": "theirs"}}, "theirs"),
    ],
)
def test_our_brokers_security_is_for_jobs_that_name_neither(
    spec: dict[str, object], secret: str | None
) -> None:
    """A job's own brokers or security are never mixed with ours."""
    job = JobSpec.model_validate({"bundle": {"configMap": {"name": "b"}}, **spec})
    assert SETTINGS.security_of(job).kafka_secret == secret
    assert SETTINGS.completed(job).transport_security == SETTINGS.security_of(job)


def test_credentials_without_tls_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert arguments_of([*NEEDED, "--kafka-tls", "--kafka-secret=s"]).kafka_secret == "s"
    with pytest.raises(SystemExit):
        arguments_of([*NEEDED, "--kafka-secret=s"])
    assert "needs --kafka-tls" in capsys.readouterr().err
