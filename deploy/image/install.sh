#!/bin/sh
# Puts Streamgraft into /opt/streamgraft, one layer of the image at a time. Runs in a folder with
# pyproject.toml, constraints.txt and, for the second, our wheel.
#   install.sh dependencies [EXTRA...]   what our code imports
#   install.sh application               our code
#   install.sh jvm                       jars of a driver, and the archive of its classes
set -eu
target=/opt/streamgraft
python=$target/bin/python
layer=$1
shift

case $layer in
dependencies)
    python3 -m venv "$target"
    python3 - "$@" > /tmp/requirements <<'PYTHON'
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = [project["optional-dependencies"][name] for name in sys.argv[1:]]
print(*project["dependencies"], *(line for extra in extras for line in extra), sep="\n")
PYTHON
    "$target/bin/pip" install --no-cache-dir --no-compile -c constraints.txt -r /tmp/requirements
    rm /tmp/requirements
    # Nothing of these runs in a driver.
    spark=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
    rm -rf "$spark/examples" "$spark/data" "$spark/tests"
    ;;
application)
    "$target/bin/pip" install --no-cache-dir --no-compile --no-deps streamgraft-*.whl
    ;;
jvm)
    # The connector's jars come through Spark's own Ivy; ours is compiled.
    "$python" -m streamgraft_local.toolchain jars "$target/jvm/jars"
    # Classes of Spark, parsed and verified: drivers start in half the time.
    STREAMGRAFT_JARS="$target/jvm/jars" \
        "$python" -m streamgraft_pe_runtime.train_cds --archive "$target/jvm/pe.jsa"
    exit
    ;;
esac
# Compiled once here, since nobody may write there later. What is compiled already stays.
"$python" -m compileall -q "$target/lib" || true
