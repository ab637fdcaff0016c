package org.apache.spark.sql.streamgraft

import java.io.IOException
import java.nio.file.{FileAlreadyExistsException => Exists, Files}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{
  FSDataOutputStream, FileAlreadyExistsException, LocalFileSystem, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/**
 * Checkpoint files that are created by exactly one of those who try.
 *
 * Spark looks whether a file is there and renames then, and rename(2) replaces what came meanwhile.
 * A hard link is made or fails.
 *
 * Who has lost a shard makes and removes none in its folder. That is looked at when the draft of a
 * file is there: if the folder is replaced later, the draft is gone from its path.
 */
class ExclusiveCheckpointFiles(path: Path, hadoop: Configuration)
  extends FileSystemBasedCheckpointFileManager(path, hadoop) {

  override def createTempFile(path: Path): FSDataOutputStream =
    try super.createTempFile(path)
    catch { case _: IOException if isLost(path) => throw lost(path) } // with its folder

  override def renameTempFile(source: Path, target: Path, replace: Boolean): Unit = {
    if (isLost(target)) {
      super.delete(source)
      throw lost(target)
    }
    rename(source, target, replace)
  }

  override def delete(path: Path): Unit = {
    if (!isDraft(path) && isLost(path)) throw lost(path)
    super.delete(path)
  }

  private def isDraft(path: Path) = path.getName.startsWith(".")

  private def isLost(path: Path): Boolean =
    ShardNames.of(path).exists(ShardNames.isLost)

  // Its code is that of Spark's error when an entry of a log is there already.
  private def lost(path: Path) =
    new IOException(s"CONCURRENT_STREAM_LOG_UPDATE: the shard of $path is another owner's by now")

  private def rename(source: Path, target: Path, replace: Boolean): Unit = fs match {
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
