"""What the operator may do in Kafka by the table of docs/operate/operations.md, and by no less."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.e2e.tls_broker import TlsBroker, tls_broker

from streamgraft_common import names
from streamgraft_common.kafka_credentials import KafkaCredentials
from streamgraft_local import Cluster
from streamgraft_operator.graph import PlannedTopic
from streamgraft_operator.kafka.client import Brokers, Kafka, KafkaUnavailable, Position
from streamgraft_operator.kafka.topics import Leftovers, TopicChanges

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[3] / "docs/operate/operations.md"
USER = "User:CN=client"
SOURCE, SINK = "visits", "totals"
TOPIC = names.topic("ns", "job", "raw", "work")
GROUP = names.consumer_group("ns", "job", "work")
TRANSACTIONAL_ID = names.transactional_id("ns", "job", "work", 0)
RESOURCES = {
    "topics": ResourceType.TOPIC,
    "consumer groups": ResourceType.GROUP,
    "transactional ids": ResourceType.TRANSACTIONAL_ID,
}


def rights() -> list[AclBinding]:
    """Return what the page's table grants."""
    table = PAGE.read_text().partition("| resource | operations | what the operator does |")[2]
    found = []
    for row in table.partition("\n\n")[0].splitlines()[2:]:
        _, resource, operations, *_ = row.split("|")
        kind = next(value for name, value in RESOURCES.items() if name in resource)
        prefix = "with the prefix `<namespace>.<job>.`" in resource
        own = [("ns.job.", ResourcePatternType.PREFIXED)] if prefix else []
        outside = [(name, ResourcePatternType.LITERAL) for name in (SOURCE, SINK)]
        for name, pattern in own or outside:
            for operation in re.findall("[A-Z][A-Za-z]+", operations):
                found.append(_allowed(kind, name, pattern, AclOperation[operation.upper()]))
    return found


def _allowed(
    kind: ResourceType, name: str, pattern: ResourcePatternType, operation: AclOperation
) -> AclBinding:
    return AclBinding(kind, name, pattern, USER, "*", operation, AclPermissionType.ALLOW)


@pytest.fixture(scope="module")
def broker(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    """A broker whose only rules are those of its access control lists."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    more = {"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"}
    with tls_broker(cluster, tmp_path_factory.mktemp("broker"), more) as running:
        yield running


@pytest.fixture
def admin(broker: TlsBroker) -> Iterator[AdminClient]:
    """An administrator, in a broker with a source."""
    found = AdminClient({"bootstrap.servers": broker.plain})
    found.create_topics([NewTopic(SOURCE, 1, 1)])[SOURCE].result(30)
    yield found
    for item in found.delete_topics([SOURCE, SINK, TOPIC]).values():
        item.exception(30)
    _revoke(found)


def _revoke(admin: AdminClient) -> None:
    given = [
        AclBindingFilter(
            right.restype,
            right.name,
            right.resource_pattern_type,
            right.principal,
            right.host,
            right.operation,
            right.permission_type,
        )
        for right in rights()
    ]
    for done in admin.delete_acls(given).values():
        done.result(30)


async def until_there(brokers: Brokers, topics: Mapping[str, int]) -> None:
    """Wait until the brokers tell of topics with so many partitions, a little after a change."""
    async with asyncio.timeout(30):
        while not topics.items() <= (await Kafka().look(brokers)).partitions.items():
            await asyncio.sleep(0.1)


async def everything(broker: TlsBroker) -> None:
    """Do what the operator does for a job, from its beginning to its end."""
    kafka, brokers = Kafka(), _brokers(broker)
    planned = PlannedTopic(TOPIC, 2, str(brokers), external=False, awaited=False)
    sink = PlannedTopic(SINK, 1, str(brokers), external=True, awaited=False)
    await until_there(brokers, {SOURCE: 1})
    await kafka.change(brokers, TopicChanges((planned, sink), (), ()))
    wider = PlannedTopic(TOPIC, 4, str(brokers), external=False, awaited=False)
    await kafka.change(brokers, TopicChanges((), (wider,), ()))
    await until_there(brokers, {TOPIC: 4, SINK: 1})
    assert await kafka.drained(brokers, GROUP, {TOPIC: 4, SOURCE: 1})
    await kafka.renew(brokers, GROUP, [Position(TOPIC, 0, 0, 0), Position(SOURCE, 0, 0, 0)])
    await kafka.fence(brokers, [TRANSACTIONAL_ID])
    assert GROUP in await kafka.groups(brokers)
    await kafka.delete(brokers, Leftovers((TOPIC,), (GROUP,)))


def _brokers(broker: TlsBroker) -> Brokers:
    secret = {key: data.decode() for key, data in broker.secret.items()}
    options = KafkaCredentials.parse(secret).librdkafka()
    return Brokers(broker.address, tuple(options.items()))


async def test_the_table_is_enough(broker: TlsBroker, admin: AdminClient) -> None:
    for done in admin.create_acls(rights()).values():
        done.result(30)
    await everything(broker)


@pytest.mark.parametrize(
    "left_out", [AclOperation.CREATE, AclOperation.ALTER, AclOperation.DELETE, AclOperation.WRITE]
)
async def test_less_is_not(broker: TlsBroker, admin: AdminClient, left_out: AclOperation) -> None:
    for done in admin.create_acls([r for r in rights() if r.operation != left_out]).values():
        done.result(30)
    with pytest.raises(KafkaUnavailable, match="uthoriz"):
        await everything(broker)
