"""The operator's settings: what holds for jobs that say nothing, and its command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from streamgraft_common.resources import CheckpointRepository, JobSpec, TransportSecurity
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


def test_our_repository_is_for_jobs_that_name_none() -> None:
    """Beside what they say of their volume and their state store."""
    shown = '{"s3": {"bucket": "ours"}}'
    repository = arguments_of([*NEEDED, f"--checkpoint-repository={shown}"]).checkpoint_repository
    settings = replace(SETTINGS, repository=repository)

    def completed(**own: object) -> CheckpointRepository | None:
        pe = {"checkpointRepository": own} if own else {}
        job = {"bundle": {"configMap": {"name": "b"}}, "processingElement": pe}
        return settings.completed(
            JobSpec.model_validate(job)
        ).processing_element.checkpoint_repository

    ours = completed(stateStore="RocksDB")
    assert ours is not None
    assert (ours.state_store, ours.s3 and ours.s3.bucket) == ("RocksDB", "ours")
    assert completed() == CheckpointRepository.model_validate_json(shown)
    theirs = completed(redis={"service": "redis"})
    assert theirs is not None
    assert (theirs.s3, theirs.keeps_copies) == (None, True)


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("--checkpoint-repository={}}", "Invalid JSON"),
        ('--checkpoint-repository={"s3": {}}', "s3: bucket: Field required"),
        ("--driver-starts=0", "'0' is no whole number of 1 or more"),
        ("--driver-starts=two", "'two' is no whole number of 1 or more"),
        ("--bundle-network=10.1.0.1/16", "10.1.0.1/16 has host bits set"),
    ],
)
def test_wrong_arguments_are_refused_with_the_reason(
    argument: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments_of([*NEEDED, argument])
    said = capsys.readouterr().err
    assert argument.partition("=")[0] in said
    assert why in said
