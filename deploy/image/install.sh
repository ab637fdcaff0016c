#!/bin/sh
# Puts Streamgraft into /opt/streamgraft. Usage: install.sh REQUIREMENT CONSTRAINTS
set -eu
target=/opt/streamgraft
python3 -m venv "$target"
"$target/bin/pip" install --no-cache-dir --no-compile -c "$2" "$1"
# The connector's jars come through Spark's own Ivy; ours is compiled.
"$target/bin/python" -m streamgraft_local.toolchain jars "$target/jars"
# Nothing of these runs in a driver.
spark=$("$target/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
rm -rf "$spark/examples" "$spark/data" "$spark/tests"
# Compiled once here, since nobody may write there later.
"$target/bin/python" -m compileall -q "$target/lib" || true
# Classes of Spark, parsed and verified: drivers start in half the time.
STREAMGRAFT_JARS="$target/jars" "$target/bin/python" -m streamgraft_pe_runtime.train_cds --archive "$target/pe.jsa"
