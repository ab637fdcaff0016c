package org.apache.spark.sql.kafka010.exactlyonce

import java.util.concurrent.{ScheduledThreadPoolExecutor, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/** Exactly once: the records of a batch and its entry in the ledger are one transaction.
  *
  * @param main the way to the shared target, for others: what it has, all have. An edit may have
  *             given a sink a target of its own since, or other brokers, and its ledger is new.
  */
class TransactionalOutlet(
    target: Target, identity: Identity, checkpoint: Checkpoint, main: Option[TransactionalOutlet])
    extends Outlet with Logging {
  // If the last batch that was begun has ended, all of them are written.
  private val transactions = new Transactions(target, identity, checkpoint,
    mayBeLost = !checkpoint.interrupted || main.exists(_.hasCome(checkpoint.begun)))
  private val failures = transactions.failures
  @volatile private var entered = Entry.NoBatch
  private var plan = ""
  @volatile private var written = false
  private var inBatch = false
  private val renewals = TransactionalOutlet.timer.scheduleWithFixedDelay(
    () => renewBetweenBatches(), target.renewMillis, target.renewMillis / 24, TimeUnit.MILLISECONDS)

  /** Whether the ledger says that a batch is written. It may say, too, that the checkpoint was put
    * back, or lost the batch.
    */
  def has(batch: Long): Boolean = {
    val last = transactions.last
    // A run in real-time mode that ends between two batches takes its ledger with it.
    if (RealTimeOutlet.parsed(last.plan).exists(_.nonEmpty)) throw failures.otherMode
    val noted = last.batch == batch
    if (last.batch > batch || (noted && last.plan != checkpoint.plan(batch)))
      throw failures.otherBatch(last, batch)
    noted
  }

  /** Whether the ledger is at a batch, or beyond: another target may be opened later. */
  private def hasCome(batch: Long): Boolean = transactions.last.batch >= batch

  override def begin(): Unit = synchronized {
    transactions.renewIfOld()
    inBatch = true
  }

  override def isIn(batch: Long): Boolean = entered == batch

  override def send(batch: Long, records: Records): Unit = {
    enter(batch)
    if (!written) failures.explained(records.foreach(transactions.send))
  }

  override def commit(batch: Long): Unit = synchronized {
    if (entered == batch && !written)
      transactions.commit(Entry(transactions.last.incarnation, batch, plan))
    inBatch = false
  }

  override def close(): Unit = {
    renewals.cancel(false)
    transactions.close()
  }

  /** Begin a batch, of which there need not be any records here. */
  def enter(batch: Long): Unit = if (entered != batch) synchronized {
    if (entered != batch) {
      written = has(batch) || main.exists(_.has(batch))
      plan = checkpoint.plan(batch)
      if (written) logWarning(s"${identity.transactionalId}: batch $batch was written before")
      else transactions.begin()
      entered = batch
    }
  }

  /** If the ledger had expired when the next batch is cut off, that batch would be refused. What
    * fails here fails again when a batch begins, or does well then.
    */
  private def renewBetweenBatches(): Unit =
    try synchronized { if (!inBatch) transactions.renewIfOld() }
    catch {
      case NonFatal(error) => logWarning(s"${identity.transactionalId}: not renewed", error)
    }
}

object TransactionalOutlet {
  /** One for all queries of the driver. */
  private val timer = new ScheduledThreadPoolExecutor(1, (run: Runnable) => {
    val thread = new Thread(run, "renewals of ledgers")
    thread.setDaemon(true)
    thread
  })
  timer.setRemoveOnCancelPolicy(true)
}
