"""`python -m streamgraft.cli`: the command line without an installed script."""

from streamgraft.cli import main

main()
