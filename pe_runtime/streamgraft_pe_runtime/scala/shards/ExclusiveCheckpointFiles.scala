package org.apache.spark.sql.streamgraft

import java.nio.file.{FileAlreadyExistsException => Exists, Files}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, LocalFileSystem, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/**
 * Checkpoint files that are created by exactly one of those who try.
 *
 * Spark looks whether a file is there and renames then, and rename(2) replaces what came meanwhile.
 * A hard link is made or fails.
 */
class ExclusiveCheckpointFiles(path: Path, hadoop: Configuration)
  extends FileSystemBasedCheckpointFileManager(path, hadoop) {

  override def renameTempFile(source: Path, target: Path, replace: Boolean): Unit = fs match {
    case local: LocalFileSystem if !replace =>
      try {
        Files.createLink(local.pathToFile(target).toPath, local.pathToFile(source).toPath)
      } catch {
        case _: Exists => throw new FileAlreadyExistsException(s"$target exists")
      }
      // The sum of the file that is there now; whoever reads before has none, which is allowed.
      val raw = local.getRaw
      val sum = local.getChecksumFile(source)
      if (raw.exists(sum)) raw.rename(sum, local.getChecksumFile(target))
      raw.delete(source, false)
    case _ => super.renameTempFile(source, target, replace)
  }
}
