"""What an image needs of the tools: `python -m streamgraft_local.toolchain jars FOLDER`."""

import argparse
import shutil
import sys
from pathlib import Path

from streamgraft_local.errors import ToolError
from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain import driver_jars, java
from streamgraft_local.toolchain.cache import Cache


def main() -> None:
    """Put the jars of a driver (STREAMGRAFT_JARS) into a folder."""
    parser = argparse.ArgumentParser(prog="python -m streamgraft_local.toolchain")
    parser.add_argument("what", choices=["jars"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    cache = Cache(cache_folder(), silent)
    try:
        jars = driver_jars.make(cache, java.find(cache))
    except ToolError as error:
        sys.exit(str(error))
    shutil.copytree(jars, arguments.folder, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
