"""The `streamgraft` command.

Each command is a module that imports what it needs when it is called, so that the command line
itself starts quickly.
"""


def main() -> None:
    """Run the command line."""
    from streamgraft.cli._app import app

    app()
