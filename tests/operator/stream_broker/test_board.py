"""The subscription board: connections while imports and exports come, change and go."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common.kube.store import Key
from streamgraft_common.resources import ExportSpec, ImportSpec
from streamgraft_operator.stream_broker.board import Board
from streamgraft_operator.stream_broker.matching import Offer, Subscriber, pair
from streamgraft_operator.stream_broker.step import export_step, import_step

ARRAY = '{"type": "array", "elementType": '
SCHEMA = json.dumps({"fields": [{"name": "n", "type": "long"}]})
OTHER = json.dumps({"fields": [{"name": "n", "type": "string"}]})
EXPORT, IMPORT = ("ns", "out"), ("ns", "in")


def offer(key: Key = EXPORT, schema: str = SCHEMA, **fields: Any) -> Offer:
    """Return an export."""
    spec = {"job": "a", "operator": "o", "stream": "s", "name": "n", "topic": key[1], **fields}
    return Offer.of(key, ExportSpec(**spec, schema=schema))


def subscriber(key: Key = IMPORT, schema: str = SCHEMA, **fields: Any) -> Subscriber:
    """Return an import."""
    wanted = {} if "subscription" in fields else {"name": "n"}
    spec = {"job": "b", "operator": "i", **wanted, **fields}
    return Subscriber.of(key, ImportSpec(**spec, schema=schema))


def test_a_connection_is_made_and_unmade() -> None:
    """Both sides hear of it, and only those that it concerns."""
    board = Board()
    assert board.set_subscriber(IMPORT, subscriber()) == set()
    assert board.set_offer(EXPORT, offer(name="else")) == set()
    assert board.set_offer(EXPORT, offer()) == {IMPORT}
    assert board.imports(EXPORT) == [IMPORT]
    decision = import_step(subscriber(), list(board.pairs(IMPORT).values()))
    assert decision.matched.topics == ["out"]
    assert [state.status for state in decision.states] == ["True", "True"]
    assert export_step(offer(), board.imports(EXPORT)).imports == ("ns/in",)
    assert board.set_offer(EXPORT, None) == {IMPORT}
    assert board.imports(EXPORT) == []
    decision = import_step(subscriber(), list(board.pairs(IMPORT).values()))
    assert (decision.matched.topics, decision.states[0].reason) == ([], "NoExport")


def test_an_empty_subscription_takes_nothing() -> None:
    """Not what has no name, either."""
    empty = subscriber(subscription="")
    assert "its subscription is not valid" in empty.problem
    assert pair(empty, offer(name=None, properties={"a": 1})) is None


def test_what_does_not_fit_takes_nothing() -> None:
    """Its condition says so."""
    refusals = [
        (offer(schema=OTHER), subscriber(), "its column n is string, not long"),
        (offer(allow_filter=False), subscriber(filter="n > 1"), "it allows no filter"),
        (offer(bootstrap_servers="other:9092"), subscriber(), "its job has other brokers"),
        (offer(tls=True), subscriber(), "its job has other brokers"),
    ]
    for offered, wanted, why in refusals:
        found = pair(wanted, offered)
        assert found is not None
        decision = import_step(wanted, [found])
        assert decision.matched.topics == []
        assert decision.states[1].status == "False"
        assert decision.states[1].message == f"it takes nothing of ns/out: {why}"


def test_brokers_may_be_written_in_another_way() -> None:
    wanted = subscriber(bootstrap_servers="a:1, b:1")
    found = pair(wanted, offer(bootstrap_servers="b:1,A:1"))
    assert found is not None
    assert import_step(wanted, [found]).matched.topics == ["out"]


def test_invalid_expressions_connect_to_nothing() -> None:
    """The condition has the place of the error."""
    wanted = subscriber(subscription="kind = 1")
    assert pair(wanted, offer(properties={"kind": 1})) is None
    ready = import_step(wanted, []).states[0]
    assert ready.message == "its subscription is not valid, column 6: '=' is not expected"
    wanted = subscriber(filter="m == 1")
    assert "its filter is not valid, column 1: there is no column m" in wanted.problem


@pytest.mark.parametrize(
    "schema",
    [
        "n bigint",
        "5",
        "{}",
        '{"fields": 1}',
        '{"fields": [1]}',
        '{"fields": [{"name": "n"}]}',
        '{"fields": [{"name": "n", "type": {"type": "array"}}]}',
        '{"fields": [{"name": "n", "type": {"type": []}}]}',
        "[" * 100_000,
        *(
            '{"fields": [{"name": "n", "type": ' + depth * ARRAY + '"long"' + "}" * depth + "}]}"
            for depth in (65, 600, 5000)
        ),
    ],
)
def test_schemas_that_users_wrote_are_looked_at(schema: str) -> None:
    """The board follows all namespaces: one resource that can't be read must not end it."""
    board, why = Board(), "its schema is not the JSON form of a Spark StructType"
    strange = [subscriber(schema=schema, filter=filter) for filter in (None, "n > 1")]
    for wanted in (subscriber(), *strange):
        board.set_subscriber(IMPORT, wanted)
        board.set_offer(EXPORT, offer(schema=schema))
        assert board.imports(EXPORT) == []
    assert export_step(offer(schema=schema), []).states[0].message.startswith(why)
    assert import_step(subscriber(schema=schema), []).states[0].message.startswith(why)


def test_an_export_that_nobody_can_find_says_so() -> None:
    """It needs a name or properties."""
    lost = offer(name=None)
    assert pair(subscriber(), lost) is None
    ready = export_step(lost, []).states[0]
    assert (ready.status, ready.reason) == ("False", "Invalid")


def test_namespaces_need_both_sides() -> None:
    """One that looks and one that allows it."""
    there = ("other", "out")
    assert pair(subscriber(), offer(there)) is None
    assert pair(subscriber(namespaces=["other"]), offer(there)) is None
    assert pair(subscriber(), offer(there, namespaces=["*"])) is None
    assert pair(subscriber(namespaces=["other"]), offer(there, namespaces=["ns"])) is not None


def test_filters_and_jobs() -> None:
    """A filter reaches the PE as a Spark expression; an import may want one job's exports."""
    wanted = subscriber(filter="n > 1")
    matched = import_step(wanted, []).matched
    assert matched.filter == "coalesce(`n` > cast('1' as bigint), false)"
    assert pair(subscriber(from_job="c"), offer()) is None
    assert pair(subscriber(from_job="a"), offer()) is not None


_offers = st.builds(
    lambda name, level, schema: offer(("ns", "x"), schema, name=name, properties={"level": level}),
    st.sampled_from(["n", "m"]),
    st.integers(0, 3),
    st.sampled_from([SCHEMA, OTHER]),
)
_subscribers = st.one_of(
    st.builds(lambda name: subscriber(name=name), st.sampled_from(["n", "m"])),
    st.builds(lambda level: subscriber(subscription=f"level >= {level}"), st.integers(0, 3)),
)
_changes = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 2),
        st.one_of(st.none(), _offers),
        st.one_of(st.none(), _subscribers),
    ),
    max_size=30,
)


@given(_changes)
def test_any_history_ends_as_if_begun_there(changes: list[Any]) -> None:
    """The board is local state: made again of what is there it is the same, and every import whose
    connections changed was returned."""
    board, offers, subscribers = Board(), dict[Key, Offer](), dict[Key, Subscriber]()
    known: dict[Key, list[str]] = {}
    for of_offer, number, offered, wanted in changes:
        key = ("ns", f"{'out' if of_offer else 'in'}{number}")
        if of_offer:
            made = None if offered is None else Offer(key, offered.spec, offered.problem)
            concerned = board.set_offer(key, made)
            _put(offers, key, made)
        else:
            wished = None if wanted is None else Subscriber.of(key, wanted.spec)
            board.set_subscriber(key, wished)
            concerned = {key}
            _put(subscribers, key, wished)
        now = {name: _read(board, name) for name in subscribers}
        assert {name for name in now if now[name] != known.get(name, [])} <= concerned
        known = now
    fresh = Board()
    for key, one in subscribers.items():
        fresh.set_subscriber(key, one)
    for key, other in offers.items():
        fresh.set_offer(key, other)
    assert {name: _read(fresh, name) for name in subscribers} == known
    for key in offers:
        assert board.imports(key) == fresh.imports(key)


def _put(found: dict[Key, Any], key: Key, value: Any) -> None:
    found.pop(key, None)
    if value is not None:
        found[key] = value


def _read(board: Board, name: Key) -> list[str]:
    return sorted(str(item) for item in board.pairs(name).values())
