"""How the command line's tables look: columns without rules, as kubectl has them."""

from rich.table import Table


def table(title: str, *headings: str) -> Table:
    """Return an empty table; long cells are folded, but for those of the first column."""
    rows = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None)
    for number, heading in enumerate(headings):
        rows.add_column(heading, overflow="fold", header_style="dim", no_wrap=number == 0)
    return rows
