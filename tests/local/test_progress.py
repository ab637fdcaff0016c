"""What long work tells where there is no terminal."""

import io

import pytest
from rich.console import Console

from streamgraft_local import Display, Phase, Step
from streamgraft_local.progress import reported


def test_without_a_terminal_each_step_is_a_line_at_once() -> None:
    """Also with characters that would be markup."""
    out = io.StringIO()
    with Display(Console(file=out, force_terminal=False, width=20)) as display:
        display.report(Step("etcd [v3]", Phase.STARTED, "is built, about two minutes"))
        (line,) = out.getvalue().splitlines()
        assert line.endswith(" s  etcd [v3]: started, is built, about two minutes")
        display.report(Step("etcd [v3]", Phase.DONE))
    assert out.getvalue().splitlines()[1].endswith("etcd [v3]: done")


@pytest.mark.parametrize("terminal", [False, True])
def test_without_steps_nothing_is_printed(terminal: bool) -> None:
    out = io.StringIO()
    with Display(Console(file=out, force_terminal=terminal)):
        pass
    assert out.getvalue() == ""


def test_a_step_that_fails_says_why() -> None:
    steps: list[Step] = []
    with reported(steps.append, "good", "a second"):
        pass
    with pytest.raises(ValueError, match="no"), reported(steps.append, "bad"):
        raise ValueError("no\nmore")
    assert steps == [
        Step("good", Phase.STARTED, "a second"),
        Step("good", Phase.DONE),
        Step("bad", Phase.STARTED),
        Step("bad", Phase.FAILED, "no"),
    ]
