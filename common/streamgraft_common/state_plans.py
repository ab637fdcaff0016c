"""What the tables of an operator's state were made from: code, and submission-time values. Pure.

The build makes the tables with values that it was given. A job may be given others, and with them
the plan may keep other state: then the tables are no proof of anything.
"""

from collections.abc import Iterable, Mapping, Sequence

from streamgraft_common.adl import Adl, Operator
from streamgraft_common.code import plan_code
from streamgraft_common.resources.savepoint import SavedPlan, SavedStage
from streamgraft_common.text import listed


def plans_of(
    adl: Adl, bundle_digest: str, operators: Sequence[str], values: Mapping[str, str]
) -> dict[str, SavedPlan]:
    """Return the plan of each operator of a stage whose tables of state may depend on values.

    `operators`: those of the stage, upstream first; `values`: what the job gives parameters.
    """
    by_name = {operator.name: operator for operator in adl.operators}
    given = {**adl.parameters, **values}
    found = {}
    for name, chosen in _with_those_before([by_name[name] for name in operators]).items():
        built = _built_with(adl, chosen)
        if by_name[name].state is None or not built:
            continue
        if any(given.get(parameter) != value for parameter, value in built.items()):
            built = {**given, **built}  # with these it may read others than the build saw
        found[name] = SavedPlan(
            code=plan_code(adl, bundle_digest, [item.name for item in chosen]),
            parameters={parameter: given.get(parameter, "") for parameter in built},
            built_with=built,
        )
    return found


def foreign_values(adl: Adl, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that functions of an application read, and that it was not built with."""
    built = _read(adl.operators)
    given = {**adl.parameters, **values}
    return {name: given[name] for name in built if name in given and given[name] != built[name]}


def has_foreign_tables(stage: SavedStage, operator: str) -> bool:
    """Return whether the tables of an operator were made with other values than it runs with."""
    plan = (stage.plans or {}).get(operator)
    return plan is not None and bool(plan.foreign)


def unproven(old: SavedStage, new: SavedStage) -> tuple[str, str]:
    """Return the first operator of both whose tables can't tell whether its state is still the
    same, with the reason and what to do; two '' if there is none."""
    if old.plans is None or new.plans is None:
        return "", ""
    for name in new.stateful:
        before, now = old.plans.get(name), new.plans.get(name)
        if name not in old.tables or name not in new.tables or _is_same(before, now):
            continue
        if now is not None and now.foreign:
            return name, (
                f"operator {name} would run with {_pairs(now.foreign)}, and the bundle was built"
                f" with {_built(now)}, so nobody can tell whether its state stays what it is:"
                f" build it with {_options(now)} (`streamgraft build`, or `streamgraft submit` of"
                " the application itself)"
            )
        if before is not None and before.foreign:
            return name, (
                f"operator {name} runs with {_pairs(before.foreign)}, and its bundle was built with"
                f" {_built(before)}, so nobody can tell what its state is: first run the same"
                f" application, built with {_options(before)}"
            )
    return "", ""


def _with_those_before(operators: Iterable[Operator]) -> dict[str, list[Operator]]:
    """Return each operator of a stage with all whose rows it gets there, by its name."""
    found: dict[str, dict[str, Operator]] = {}
    makers: dict[str, str] = {}
    for operator in operators:
        before = [found[makers[stream]] for stream in operator.inputs if stream in makers]
        found[operator.name] = {k: v for item in before for k, v in item.items()}
        found[operator.name][operator.name] = operator
        makers |= dict.fromkeys(operator.outputs, operator.name)
    return {name: list(chosen.values()) for name, chosen in found.items()}


def _built_with(adl: Adl, operators: Sequence[Operator]) -> dict[str, str]:
    """Return the values that functions read when the build called them."""
    if any(operator.parameters is None for operator in operators):
        return dict(adl.parameters)  # by an earlier release, which had nothing but the defaults
    return _read(operators)


def _read(operators: Iterable[Operator]) -> dict[str, str]:
    return {k: v for item in operators for k, v in (item.parameters or {}).items()}


def _is_same(old: SavedPlan | None, new: SavedPlan | None) -> bool:
    """Return whether two plans are one: the same code, to which the same values were given.

    Of a plan that was built as it runs all is known that it reads; of another one nothing, so all
    values count.
    """
    if old is None or new is None:
        return old is new
    known = [plan for plan in (old, new) if not plan.foreign]
    names = known[0].parameters if known else {**old.parameters, **new.parameters}
    return old.code == new.code and all(
        old.parameters.get(name) == new.parameters.get(name) for name in names
    )


def _built(plan: SavedPlan) -> str:
    return _pairs({name: plan.built_with[name] for name in plan.foreign})


def _options(plan: SavedPlan) -> str:
    return " ".join(f"--param {name}={value}" for name, value in plan.foreign.items())


def _pairs(values: Mapping[str, str]) -> str:
    return listed(f"{name}={value}" for name, value in values.items())
