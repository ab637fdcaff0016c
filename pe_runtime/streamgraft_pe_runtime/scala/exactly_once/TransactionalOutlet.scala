package org.apache.spark.sql.kafka010.exactlyonce

import java.util.UUID
import java.util.concurrent.{ExecutionException, FutureTask}

import org.apache.kafka.clients.producer.KafkaProducer
import org.apache.kafka.common.errors.TimeoutException
import org.apache.spark.internal.Logging

/** Exactly once: the records of a batch and its entry in the ledger are one transaction.
  *
  * To fence the owner before and to read the ledger takes some requests. They go out while Spark
  * plans and computes the first batch.
  */
class TransactionalOutlet(target: Target, identity: Identity, checkpoint: Checkpoint)
    extends Outlet with Logging {
  private val ledger = new Ledger(target, identity)
  private val failures = new Failures(target, identity)
  private val opening = new FutureTask[Unit](() => failures.explained(open()))
  @volatile private var producer: KafkaProducer[Array[Byte], Array[Byte]] = _
  @volatile private var closed = false
  @volatile private var entered = Entry.NoBatch
  private var last: Entry = _
  private var notedAt = 0L
  private var plan = ""
  private var written = false

  private val thread = new Thread(opening, s"opening ${identity.transactionalId}")
  thread.setDaemon(true)
  thread.start()

  /** Offsets that nobody commits expire, after a week by default. */
  override def begin(): Unit = synchronized {
    if (opening.isDone && System.nanoTime - notedAt > TransactionalOutlet.RenewNanos) {
      await()
      failures.explained(renew(last))
    }
  }

  override def send(batch: Long, records: Records): Unit = {
    if (entered != batch) enter(batch)
    if (!written) failures.explained(records.foreach(producer.send))
  }

  override def commit(batch: Long): Unit = synchronized {
    if (entered == batch && !written) failures.explained {
      val entry = Entry(last.incarnation, batch, plan)
      ledger.note(producer, entry)
      complete(entry)
      failures.transactionEnded()
    }
  }

  /** Aborts what is open, if the brokers answer soon; else the next owner does. */
  override def close(): Unit = {
    closed = true
    opening.cancel(true)
    Option(producer).foreach(_.close(Outlet.CloseWithin))
  }

  private def enter(batch: Long): Unit = synchronized {
    if (entered != batch) {
      await()
      plan = checkpoint.plan(batch)
      written = last.batch == batch
      if (last.batch > batch || (written && last.plan != plan)) throw failures.otherBatch(last, batch)
      if (written) logWarning(s"${identity.transactionalId}: batch $batch was written before")
      else failures.explained { producer.beginTransaction(); failures.transactionBegan() }
      entered = batch
    }
  }

  private def await(): Unit =
    try opening.get() catch { case error: ExecutionException => throw error.getCause }

  private def open(): Unit = {
    producer = new KafkaProducer[Array[Byte], Array[Byte]](target.producer)
    if (closed) close()
    producer.initTransactions() // what the owner before had open is complete or aborted from here on
    last = checkpoint.incarnation(target.name) match {
      case Some(incarnation) => renewed(incarnation)
      case None => begun()
    }
  }

  /** Go on with a ledger that was begun. What is in it is noted again, lest it expire. */
  private def renewed(incarnation: String): Entry = {
    val entry = ledger.read() match {
      case Some(found) if found.incarnation == incarnation => found
      case Some(_) => throw failures.otherQuery(checkpoint.marker(target.name))
      case None if checkpoint.interrupted => throw failures.ledgerLost(ledger, checkpoint.marker(target.name))
      case None => Entry.first(incarnation) // all earlier batches ended, so all are written
    }
    renew(entry)
    entry
  }

  /** Begin the ledger. Only then is it marked as begun, and only then are records written. */
  private def begun(): Entry = {
    val own = UUID.randomUUID().toString
    renew(Entry.first(own))
    val kept = checkpoint.keep(target.name, own)
    // An owner that we have fenced since was as far as this: it wrote nothing under its mark.
    if (kept != own) renew(Entry.first(kept))
    Entry.first(kept)
  }

  private def renew(entry: Entry): Unit = {
    producer.beginTransaction()
    ledger.note(producer, entry)
    complete(entry)
  }

  private def complete(entry: Entry): Unit = {
    try producer.commitTransaction()
    catch { case _: TimeoutException => producer.commitTransaction() } // brokers are away: once more
    last = entry
    notedAt = System.nanoTime
  }
}

object TransactionalOutlet {
  private val RenewNanos = 24L * 3600 * 1000000000
}
