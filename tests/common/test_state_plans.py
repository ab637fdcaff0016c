"""Tables of state say nothing of a job that runs with other values than they were made with."""

from collections.abc import Mapping

import pytest

from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, StateColumn, StateTable, Stream
from streamgraft_common.edits import EditRefused, check, goes_on
from streamgraft_common.resources import SavedStage, SavepointStatus
from streamgraft_common.resources.savepoint import FORMAT
from streamgraft_common.restore import NotRestorable, match
from streamgraft_common.restore import check as check_restore
from streamgraft_common.state_plans import foreign_values, plans_of

DEFAULTS = {"by": "user", "least": "1", "top": "9", "url": "x"}
OPERATORS = ["read", "clean", "totals", "best"]


def bundle(
    built: Mapping[str, str] = DEFAULTS, *, told: bool = True, code: str = "c", kept: str = "sum"
) -> Adl:
    """Return an application in which `clean` reads `least`, `totals` `by`, and `best` `top`.

    `built`: the values that it was built with; `told`: whether it says so, as older ones do not.
    """

    def function(name: str, reads: str, source: str, state: str = "") -> Operator:
        columns = [
            StateColumn(name=item, type=kind)
            for item, kind in ((built["by"], "string"), (state, "bigint"))
        ]
        table = StateTable(operator="stateStoreSave", key=columns[:1], value=columns[1:])
        return Operator(
            name=name,
            kind="function",
            inputs=[source],
            outputs=[name],
            code=code,
            stateful=bool(state),
            state=[table] if state else None,
            parameters={reads: built[reads]} if told else None,
        )

    source = Operator(
        name="read",
        kind="kafka-source",
        outputs=["read"],
        kafka=KafkaEndpoint(topic="in"),
        parameters={} if told else None,
    )
    return Adl(
        name="app",
        built_by="0",
        module="app",
        application="app",
        operators=[
            source,
            function("clean", "least", "read"),
            function("totals", "by", "clean", kept),
            function("best", "top", "totals"),
        ],
        streams=[
            Stream(name=name, producer=name, schema={"type": "struct", "fields": []})
            for name in OPERATORS
        ],
        parameters=DEFAULTS,
    )


def stage(adl: Adl, **values: str) -> list[SavedStage]:
    """Return the one stage of a job of the application that gives parameters values."""
    return [
        SavedStage(
            name="totals",
            shards=1,
            operators=OPERATORS,
            stateful=["totals"],
            tables={item.name: item.state for item in adl.operators if item.state is not None},
            plans=plans_of(adl, "digest", OPERATORS, values),
        )
    ]


def built(code: str = "c", kept: str = "sum", **values: str) -> Adl:
    """Return the application, built with values that are not the defaults."""
    return bundle({**DEFAULTS, **values}, code=code, kept=kept)


def refused(old: list[SavedStage], new: list[SavedStage]) -> str:
    with pytest.raises(EditRefused) as caught:
        check(old, new, drop=["totals"])
    return str(caught.value)


RUNS = stage(bundle())


def test_what_is_noted_is_what_the_state_follows_from() -> None:
    """The operator with state, and those before it in its stage."""
    (found,) = RUNS
    assert found.plans
    (plan,) = found.plans.values()
    assert plan.parameters == plan.built_with == {"by": "user", "least": "1"}
    assert plans_of(bundle(), "digest", ["read", "clean"], {}) == {}
    (alone,) = plans_of(bundle(), "digest", ["totals", "best"], {}).values()
    assert alone.parameters == {"by": "user"}
    assert SavedStage.model_validate(found.to_wire()) == found


def test_a_value_that_the_tables_were_not_made_with_is_refused() -> None:
    """As with `kubectl edit`: the bundle is the same."""
    why = refused(RUNS, stage(bundle(), by="page"))
    assert "operator totals would run with by=page, and the bundle was built with by=user" in why
    assert "build it with --param by=page" in why
    assert "new names" in why
    assert "--drop-state totals" in why
    assert "least=5" in refused(RUNS, stage(bundle(), least="5"))


def test_a_bundle_for_the_new_values_is_compared_by_its_tables() -> None:
    new = stage(built(by="page"), by="page")
    assert "is kept by (user string), and would be by (page string)" in refused(RUNS, new)
    check(RUNS, stage(built(least="5"), least="5"), drop=())
    check(stage(built(least="5"), least="5"), RUNS, drop=())
    more = stage(built(least="5", kept="count"), least="5")
    assert "would hold (count bigint)" in refused(RUNS, more)


@pytest.mark.parametrize("values", [{"url": "y"}, {"top": "3"}, {"url": "y", "top": "3"}])
def test_what_no_state_follows_from_changes_freely(values: dict[str, str]) -> None:
    """What functions read when they handle rows is not seen by the build, and stays free, too."""
    check(RUNS, stage(bundle(), **values), drop=())


def test_a_bundle_that_was_built_with_other_values_than_the_jobs_is_edited_by_the_same_code() -> (
    None
):
    """A job may begin with any. Whatever leaves code and values alone leaves the state alone."""
    runs = stage(bundle(), by="page")
    check([], runs, drop=())
    check(runs, runs, drop=())
    assert goes_on(runs, runs)
    check(runs, stage(built(by="link"), by="page"), drop=())
    right = stage(built(by="page"), by="page")
    check(runs, right, drop=())
    for edit in (stage(bundle(code="d"), by="page"), stage(bundle(), by="link"), RUNS):
        assert "built with by=user" in refused(runs, edit)
    changed = stage(built(by="page", code="d"), by="page")
    why = refused(runs, changed)
    assert "operator totals runs with by=page, and its bundle was built with by=user" in why
    assert "first run the same application, built with --param by=page" in why
    check(right, changed, drop=())


def test_what_else_is_read_with_other_values_is_not_known() -> None:
    """It may be read only because another value is what it is."""
    runs = stage(bundle(), by="page", url="x")
    assert "by=user" in refused(runs, stage(bundle(), by="page", url="y"))
    right = stage(built(by="page"), by="page", url="y")
    check(runs, right, drop=())  # now it is: no function has read it
    check(right, runs, drop=())


def test_bundles_that_dont_say_what_is_read_were_built_with_the_defaults() -> None:
    old = bundle(told=False)
    check(stage(old), stage(old), drop=())
    check(stage(old), RUNS, drop=())
    check(stage(old), stage(built(least="5"), least="5"), drop=())
    assert "url=y" in refused(stage(old), stage(old, url="y"))
    check(stage(old, url="y"), stage(old, url="y"), drop=())
    check(stage(old, url="y"), stage(bundle(), url="y"), drop=())
    assert "url=x" in refused(stage(old, url="y"), stage(bundle(code="d"), url="y"))


def test_what_an_earlier_release_noted_is_compared_by_tables_alone() -> None:
    old = [item.model_copy(update={"plans": None}) for item in RUNS]
    check(old, RUNS, drop=())
    check(old, stage(bundle(), by="page"), drop=())
    assert "would be by (page string)" in refused(old, stage(built(by="page"), by="page"))


def test_tables_that_spark_could_not_describe_are_not_missed() -> None:
    new = [item.model_copy(update={"tables": {}}) for item in stage(bundle(), by="page")]
    check(RUNS, new, drop=())


def test_a_restore_goes_by_the_same_rule() -> None:
    def restore(old: list[SavedStage], new: list[SavedStage]) -> None:
        check_restore("s", SavepointStatus(phase="Completed", format=FORMAT, stages=old), new)

    restore(RUNS, RUNS)
    restore(RUNS, stage(built(by="page"), by="page"))  # by types alone, as always
    runs = stage(bundle(), by="page")
    restore(runs, stage(built(by="page"), by="page"))
    for old, new, message in (
        (RUNS, runs, "build it with --param by=page .*, or give it a new name"),
        (runs, stage(built(by="page", code="d"), by="page"), "first run the same application"),
    ):
        with pytest.raises(NotRestorable, match=message):
            restore(old, new)
        assert match(old, new[0]) == old[0]  # so a PE of other tables is not stopped


def test_what_a_bundle_was_not_built_with() -> None:
    assert foreign_values(bundle(), {}) == {}
    assert foreign_values(bundle(), {"url": "y", "unknown": "1"}) == {}
    assert foreign_values(bundle(), {"by": "page", "top": "9"}) == {"by": "page"}
    assert foreign_values(built(by="page"), {}) == {"by": "user"}
    assert foreign_values(bundle(told=False), {"by": "page"}) == {}
