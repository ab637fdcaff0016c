"""The `streamgraft` command, which is also a plugin of kubectl.

Each command is a module that imports what it needs when it is called, so that the command line
itself starts quickly.
"""

import os
import sys


def main() -> None:
    """Run the command line."""
    from streamgraft.cli._app import app

    app(prog_name="streamgraft")


def complete() -> None:
    """Print what kubectl may complete the last argument to (`kubectl_complete-streamgraft`)."""
    words = ["streamgraft", *sys.argv[1:]]
    os.environ["COMP_WORDS"] = " ".join(words)
    os.environ["COMP_CWORD"] = str(len(words) - 1)
    os.environ["_STREAMGRAFT_COMPLETE"] = "complete_bash"
    try:
        main()
    finally:
        sys.stdout.write("\n:4\n")  # no files beside them
