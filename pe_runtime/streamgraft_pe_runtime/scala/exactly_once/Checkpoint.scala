package org.apache.spark.sql.kafka010.exactlyonce

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.streamgraft.ShardNames

/** What the sink reads of the query's checkpoint, and the files that it adds to it: for each target
  * `ledgers/<name>`, with the incarnation that the ledger must have.
  *
  * The file is there if and only if the ledger was begun. So a ledger that is missing was never
  * begun, or is lost. `ledgers/former/<name>`: the checkpoint was another owner's meanwhile, whose
  * query may have written under the same id; the ledger that was begun before counts if it is there.
  */
class Checkpoint(root: Path) {
  private val files = CheckpointFileManager.create(
    root, SparkSession.active.sessionState.newHadoopConf())
  private val ledgers = new Path(root, "ledgers")
  private val owner = newest("queries")
  /** Ours since before that, when it may have been another's already. */
  private val names = ShardNames.ofQuery(root)

  /** The last batch that was begun in the runs before. */
  val begun: Long = newest("offsets")

  /** Whether the run before ended within that batch, which comes again. */
  val interrupted: Boolean = begun > newest("commits")

  /** Whether real-time mode has written what no batch of the log has. */
  val realTimeBegun: Boolean = files.exists(new Path(ledgers, "REAL-TIME"))

  def marker(target: String): Path = new Path(ledgers, target)
  def former(target: String): Path = new Path(ledgers, s"former/$target")

  /** The incarnation in a marker, if that is there. */
  def incarnation(marker: Path): Option[String] =
    Option.when(files.exists(marker))(text(marker))

  /** Write the incarnation down, or return that which is there. That is read whether or not the file
    * is said to exist: an NFS client may remember that it did not.
    */
  def keep(target: String, incarnation: String): String = {
    files.mkdirs(ledgers)
    val stream = files.createAtomic(marker(target), overwriteIfPossible = false)
    try {
      stream.write(incarnation.getBytes(UTF_8))
      stream.close()
      incarnation
    } catch {
      case _: FileAlreadyExistsException => text(marker(target))
      case error: Throwable => stream.cancel(); throw error
    }
  }

  /** Whether another owner has taken the query's shards over since we took them; it may have given
    * them back. Then this run begins no batch any more.
    */
  def isTakenOver: Boolean =
    files.exists(new Path(ledgers, "TAKEN-OVER")) || newest("queries") != owner ||
      names.exists(ShardNames.isLost)

  /** Have whoever goes on with the checkpoint know that real-time mode has begun to write. Its owner
    * takes the mark away when the query has ended between two batches.
    */
  def markRealTime(): Unit = {
    files.mkdirs(ledgers)
    files.createAtomic(new Path(ledgers, "REAL-TIME"), overwriteIfPossible = true).close()
  }

  /** Do the same for what is written at least once, and comes again.
    *
    * @param since time in seconds: what comes again was not written before it
    */
  def markLoose(since: Long): Unit = {
    files.mkdirs(ledgers)
    val stream = files.createAtomic(new Path(ledgers, "LOOSE"), overwriteIfPossible = true)
    try {
      stream.write(since.toString.getBytes(UTF_8))
      stream.close()
    } catch { case error: Throwable => stream.cancel(); throw error }
  }

  def forget(target: String): Unit = Seq(former(target), marker(target)).foreach(files.delete)

  /** Checksum of what a batch reads: the same again only if the batch is the same. In which order
    * the sources are, and which of them twice, does not count: an edit may change that.
    */
  def plan(batch: Long): String = {
    val checksum = new CRC32
    val lines = new String(read(new Path(root, s"offsets/$batch")), UTF_8).linesIterator.toSeq
    lines.distinct.sorted.foreach(line => checksum.update(line.getBytes(UTF_8)))
    checksum.getValue.toHexString
  }

  private def newest(log: String): Long = {
    val folder = new Path(root, log)
    if (!files.exists(folder)) -1L
    else files.list(folder).map(_.getPath.getName).filter(_.forall(_.isDigit)).map(_.toLong)
      .maxOption.getOrElse(-1L)
  }

  private def text(path: Path): String = new String(read(path), UTF_8).trim

  private def read(path: Path): Array[Byte] = {
    val stream = files.open(path)
    try stream.readAllBytes() finally stream.close()
  }
}
