"""What long work tells where there is no terminal."""

import io

from rich.console import Console

from streamgraft_local import Display, Phase, Step


def test_without_a_terminal_each_step_is_a_line_at_once() -> None:
    """Also with characters that would be markup."""
    out = io.StringIO()
    with Display(Console(file=out, force_terminal=False, width=20)) as display:
        display.report(Step("etcd [v3]", Phase.STARTED, "is built, about two minutes"))
        (line,) = out.getvalue().splitlines()
        assert line.endswith(" s  etcd [v3]: started, is built, about two minutes")
        display.report(Step("etcd [v3]", Phase.DONE))
    assert out.getvalue().splitlines()[1].endswith("etcd [v3]: done")
