package org.apache.spark.sql.kafka010.exactlyonce

import org.apache.spark.internal.Logging

/** Exactly once: the records of a batch and its entry in the ledger are one transaction. */
class TransactionalOutlet(target: Target, identity: Identity, checkpoint: Checkpoint)
    extends Outlet with Logging {
  // If the last batch that was begun has ended, all of them are written.
  private val transactions =
    new Transactions(target, identity, checkpoint, mayBeLost = !checkpoint.interrupted)
  private val failures = transactions.failures
  @volatile private var entered = Entry.NoBatch
  private var plan = ""
  @volatile private var written = false

  override def begin(): Unit = synchronized(transactions.renewIfOld())

  override def send(batch: Long, records: Records): Unit = {
    if (entered != batch) enter(batch)
    if (!written) failures.explained(records.foreach(transactions.send))
  }

  override def commit(batch: Long): Unit = synchronized {
    if (entered == batch && !written)
      transactions.commit(Entry(transactions.last.incarnation, batch, plan))
  }

  override def close(clean: Boolean): Unit = transactions.close()

  private def enter(batch: Long): Unit = synchronized {
    if (entered != batch) {
      val last = transactions.last
      // A run in real-time mode that ends between two batches takes its ledger with it.
      if (RealTimeOutlet.parsed(last.plan).exists(_.nonEmpty)) throw failures.otherMode
      plan = checkpoint.plan(batch)
      written = last.batch == batch
      if (last.batch > batch || (written && last.plan != plan)) throw failures.otherBatch(last, batch)
      if (written) logWarning(s"${identity.transactionalId}: batch $batch was written before")
      else transactions.begin()
      entered = batch
    }
  }
}
