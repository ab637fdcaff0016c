package org.apache.spark.sql.kafka010.exactlyonce

import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.internal.Logging

/** How far the records of one source partition are written: those before `offset`, and of that one
  * so many rows.
  */
case class Position(offset: Long, rows: Int)

/** Real-time mode, exactly once: batches last for seconds, so a transaction is committed every few
  * milliseconds. Its entry in the ledger are the positions in the source.
  *
  * A crash makes the whole batch run again. Its rows come in the same order, and those that the
  * ledger has are dropped.
  */
class RealTimeOutlet(target: Target, identity: Identity, checkpoint: Checkpoint, everyMillis: Long)
    extends Logging {
  // Of a ledger that ended with its batch, as one of micro-batches may have, nothing is missed. That
  // of micro-batches has a mark of this name, too, but is at the job's own brokers. At the sinks',
  // if they have others, is what this mode had noted before its last run ended with a batch.
  private val nothingBegun = !checkpoint.interrupted && !checkpoint.realTimeBegun
  val transactions = new Transactions(target, identity, checkpoint,
    mayBeLost = nothingBegun, mayBeFormer = nothingBegun)
  private lazy val positions: mutable.Map[Lane, Position] = {
    val found = RealTimeOutlet.parsed(transactions.last.plan)
    // The run before may have been in the other mode.
    if (found.isEmpty && checkpoint.interrupted) throw transactions.failures.otherMode
    mutable.Map.from(found.getOrElse(Map.empty[Lane, Position]))
  }
  private var open = false
  private var marked = false
  private var begun = checkpoint.realTimeBegun // whether the ledger may have positions
  private var skipped = 0
  private var failure: Throwable = _
  private val timer = Executors.newSingleThreadScheduledExecutor { (run: Runnable) =>
    val thread = new Thread(run, s"commits of ${identity.transactionalId}")
    thread.setDaemon(true)
    thread
  }
  timer.scheduleWithFixedDelay(() => tick(), everyMillis, everyMillis, TimeUnit.MILLISECONDS)

  /** Write a row that comes from a source record, the `rows`-th of that one in its lane. */
  def write(lane: Lane, origin: Position, record: Record): Unit = synchronized {
    if (failure != null) throw failure
    val done = positions.getOrElse(lane, Position(-1, 0))
    if (origin.offset < done.offset || (origin.offset == done.offset && origin.rows <= done.rows))
      skipped += 1
    else {
      if (!open) { mark(); transactions.begin(); open = true; begun = true }
      transactions.failures.explained(transactions.send(record))
      positions(lane) = origin
    }
  }

  /** End a batch. Its log is written only then, and one without rows has a log, too. */
  def end(): Unit = synchronized { mark(); commit() }

  def commit(): Unit = synchronized {
    if (failure != null) throw failure
    if (open) {
      val last = transactions.last
      transactions.commit(last.copy(plan = RealTimeOutlet.text(positions)))
      open = false
    }
    if (skipped > 0) {
      logWarning(s"${identity.transactionalId}: $skipped rows were written before")
      skipped = 0
    }
  }

  /** A batch that runs again may end before what was written when it was cut off. Till batches have
    * come past that, the ledger counts. A run without rows to write does not notice that another
    * one has begun, whose ledger it is then.
    *
    * @param ended where the last batch has ended; none if one was cut off
    * @return whether the ledger is over
    */
  def close(ended: Option[Map[Lane, Position]]): Boolean = {
    timer.shutdownNow()
    synchronized {
      val over = !open && ended.exists(isWithin) && transactions.isOwned
      try { if (over) checkpoint.forget(target.name) } // at once: another run may begin any time
      finally transactions.close()
      over
    }
  }

  private def isWithin(ended: Map[Lane, Position]): Boolean =
    !begun || ended.nonEmpty && transactions.isOpen && Try(positions.forall { case (lane, written) =>
      val isRead = ended.keys.exists(at => at.scan == lane.scan && at.topic == lane.topic)
      !isRead || ended.get(lane).exists(_.offset > written.offset)
    }).getOrElse(false)

  private def mark(): Unit = if (!marked) { checkpoint.markRealTime(); marked = true }

  private def tick(): Unit =
    try synchronized { if (open) commit() else transactions.renewIfOld() }
    catch { case error: Throwable => synchronized { failure = error } }
}

/** The source partition of some rows. `scan` tells apart what reads the same one twice, and topics
  * of one name in several clusters.
  */
case class Lane(scan: Int, topic: String, partition: Int)

object RealTimeOutlet {
  /** `scan/topic:` and for each partition `partition=offset`, with `:rows` if there are several.
    * Brokers take 4096 bytes by default: 250 partitions and more.
    */
  def text(positions: collection.Map[Lane, Position]): String =
    positions.groupBy { case (lane, _) => (lane.scan, lane.topic) }.map {
      case ((scan, topic), some) => s"$scan/$topic:" + some.map { case (lane, at) =>
        s"${lane.partition}=${at.offset}" + (if (at.rows == 1) "" else s":${at.rows}")
      }.mkString(";")
    }.mkString(",")

  /** None if the entry is that of a batch. */
  def parsed(text: String): Option[Map[Lane, Position]] =
    if (text == Entry.NoPlan) Some(Map.empty)
    else Option.when(text.contains('='))(text.split(',').flatMap {
      case Topic(scan, topic, rest) => rest.split(';').map(positionOf(scan.toInt, topic, _))
    }.toMap)

  def positions(text: String): Map[Lane, Position] = parsed(text).getOrElse(Map.empty)

  private val Topic = "([^/]+)/([^/:=]+):(.+)".r

  private def positionOf(scan: Int, topic: String, text: String): (Lane, Position) =
    text.split("[=:]") match {
      case Array(partition, offset) => Lane(scan, topic, partition.toInt) -> Position(offset.toLong, 1)
      case Array(partition, offset, rows) =>
        Lane(scan, topic, partition.toInt) -> Position(offset.toLong, rows.toInt)
    }
}
