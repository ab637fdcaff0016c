"""The local file system of a driver's Hadoop, without a process for each file.

Without its native library Hadoop starts `chmod` for every file that it creates: four times in a
batch without state, one behind the other, for files that have these permissions anyway.
"""

from typing import Any

from pyspark.sql import SparkSession

from streamgraft_pe_runtime import java_classes

_SETTING = "fs.file.impl"
_CLASS = "LocalFiles"
_LOCAL_FILES = f"""
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class {_CLASS} extends LocalFileSystem {{
    public {_CLASS}() {{ super(new Raw()); }}

    public static class Raw extends RawLocalFileSystem {{
        public void setPermission(Path path, FsPermission wanted) throws java.io.IOException {{
            if (wanted.getStickyBit()) {{ // which Java can't set
                super.setPermission(path, wanted);
                return;
            }}
            String symbols = wanted.getUserAction().SYMBOL + wanted.getGroupAction().SYMBOL
                + wanted.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                pathToFile(path).toPath(), PosixFilePermissions.fromString(symbols));
        }}
    }}
}}
"""


def install(session: SparkSession) -> None:
    """Have all that is written to `file:` from now on go through it.

    A file system that the application's own settings name (`spark.hadoop.fs.file.impl`) stays.
    """
    jvm: Any = session._jvm
    file_system, everywhere = jvm.org.apache.hadoop.fs.FileSystem, jvm.java.net.URI("file:///")
    conf = session.sparkContext._jsc.hadoopConfiguration()
    if conf.get(_SETTING):
        return
    file_system.get(everywhere, conf).close()
    # Hadoop keeps one object for each kind of file system, whose class only this copy tells. Tasks
    # have configurations of their own, which would not find a class of ours.
    first = jvm.org.apache.hadoop.conf.Configuration(conf)
    first.setClassLoader(java_classes.loaded(session, _LOCAL_FILES, _CLASS).getClassLoader())
    first.set(_SETTING, _CLASS)
    file_system.get(everywhere, first)
