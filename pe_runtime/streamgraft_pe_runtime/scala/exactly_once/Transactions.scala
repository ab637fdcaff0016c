package org.apache.spark.sql.kafka010.exactlyonce

import java.time.Duration
import java.util.concurrent.{ExecutionException, FutureTask, TimeUnit}

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.kafka.clients.producer.KafkaProducer
import org.apache.kafka.common.errors.{InvalidPidMappingException, RetriableException, TimeoutException}

/** The transactions of one run of a query, each with an entry of the ledger.
  *
  * To fence the owner before and to read the ledger takes some requests. They go out while Spark
  * plans and computes the first batch. Methods are for one thread at a time.
  *
  * @param mayBeLost whether no batch can have been cut off, so that a ledger that is missing does
  *                  no harm
  * @param mayBeFormer whether nothing is written that the ledger must tell, so that one which has
  *                    another incarnation is of before
  */
class Transactions(target: Target, identity: Identity, checkpoint: Checkpoint,
    mayBeLost: => Boolean, mayBeFormer: Boolean = false) {
  val failures = new Failures(target, identity)
  private val ledger = new Ledger(target, identity)
  private val marker = checkpoint.marker(target.name)
  private val opening = new FutureTask[Unit](() => failures.explained(open()))
  @volatile private var producer: KafkaProducer[Array[Byte], Array[Byte]] = _
  @volatile private var closed = false
  @volatile private var noted: Entry = _
  @volatile private var notedAt = 0L
  private var cutOff = false // whether a renewal has left its transaction open, for want of answers
  private var failure: Option[Throwable] = None

  start(opening, "opening")

  /** The entry of the last transaction. Waits until this run owns the transactional id. */
  def last: Entry = {
    try opening.get() catch { case error: ExecutionException => throw error.getCause }
    noted
  }

  /** Whether this run owns the transactional id, or can't. */
  def isOpen: Boolean = opening.isDone

  def begin(): Unit = failures.explained {
    producer.beginTransaction()
    failures.transactionBegan()
  }

  /** Send a record; several threads may. */
  def send(record: Record): Unit = producer.send(record)

  def commit(entry: Entry): Unit = failures.explained {
    // If a record's answer says that this producer is fenced, the producer forgets a request for the
    // ledger that waits at that time: its caller would hear nothing for max.block.ms.
    producer.flush()
    ledger.note(producer, entry)
    try producer.commitTransaction()
    catch { case _: TimeoutException => producer.commitTransaction() } // brokers are away: once more
    failures.transactionEnded()
    noted = entry
    notedAt = System.currentTimeMillis // the other clock stands still while a machine sleeps
  }

  /** Offsets that nobody commits expire, after a week by default, and transactional ids that nobody
    * uses. What this run has noted is still so if they have, as after the sleep of a machine.
    */
  def renewIfOld(): Unit = {
    failure.foreach(throw _)
    if (isOpen && System.currentTimeMillis - notedAt > target.renewMillis) try {
      if (cutOff) reopen()
      cutOff = true
      try renew(last)
      catch {
        case NonFatal(error) if isBy(classOf[InvalidPidMappingException], error) =>
          reopen()
          renew(last)
      }
      cutOff = false
    } catch {
      case NonFatal(error) =>
        if (!isBy(classOf[RetriableException], error)) failure = Some(error)
        throw error
    }
  }

  /** Whether this run owns the transactional id still, which one transaction more tells. False, too,
    * if the brokers don't answer soon.
    */
  def isOwned: Boolean = {
    val asking = new FutureTask[Unit](() => renew(last))
    start(asking, "owner")
    Try(asking.get(Transactions.AskSeconds, TimeUnit.SECONDS)).isSuccess
  }

  /** Aborts what is open, if the brokers answer soon; else the next owner does. */
  def close(): Unit = {
    closed = true
    opening.cancel(true)
    Option(producer).foreach(_.close(Outlet.CloseWithin))
  }

  private def start(task: Runnable, what: String): Unit = {
    val thread = new Thread(task, s"$what ${identity.transactionalId}")
    thread.setDaemon(true)
    thread.start()
  }

  private def renew(entry: Entry): Unit = {
    begin()
    commit(entry)
  }

  private def open(): Unit = {
    own()
    checkpoint.incarnation(marker) match {
      case Some(incarnation) =>
        renew(entry(incarnation, marker).getOrElse(
          if (mayBeFormer) Entry.first(incarnation) else throw failures.otherQuery(marker)))
      case None => first()
    }
  }

  /** Go on with another producer. What another owner has written meanwhile must stay, as above. */
  private def reopen(): Unit = failures.explained {
    val entry = last
    producer.close(Duration.ZERO)
    own()
    for (found <- ledger.read(entry.incarnation) if found != entry)
      throw if (found.incarnation == entry.incarnation) failures.otherOwner
      else failures.otherQuery(marker)
  }

  private def own(): Unit = {
    refuseIfTakenOver() // whoever has the shards by now keeps the id
    producer = new KafkaProducer[Array[Byte], Array[Byte]](target.producer)
    if (closed) close()
    producer.initTransactions() // what the owner before had open is complete or aborted from here on
    refuseIfTakenOver() // frozen meanwhile, we have taken it from our successor: its ledger stays
  }

  private def refuseIfTakenOver(): Unit =
    if (checkpoint.isTakenOver) throw failures.otherOwner

  private def isBy(kind: Class[_], error: Throwable): Boolean =
    Failures.causes(error).exists(kind.isInstance)

  /** The entry of a ledger that was begun; none if the ledger is another's. It is noted again, lest
    * it expire.
    */
  private def entry(incarnation: String, marker: Path): Option[Entry] =
    ledger.read(incarnation) match {
      case Some(entry) => Option.when(entry.incarnation == incarnation)(entry)
      case None if mayBeLost => Some(Entry.first(incarnation))
      case None => throw failures.ledgerLost(ledger, marker)
    }

  /** Begin the ledger. Only then is it marked as begun, and only then are records written. */
  private def first(): Unit = {
    val former = checkpoint.former(target.name)
    val there = ledger.read(Entry.NoIncarnation)
    val begun = checkpoint.incarnation(former).flatMap(entry(_, former))
      .getOrElse(Entry.first(identity.newIncarnation()))
    renew(begun)
    val kept = checkpoint.keep(target.name, begun.incarnation)
    // An owner that we have fenced since was as far as this: it wrote nothing under its mark. Or the
    // mark was not shown to us (NFS), and the entry in the place of which we have put ours counts.
    if (kept != begun.incarnation)
      renew(there.filter(_.incarnation == kept).getOrElse(Entry.first(kept)))
  }
}

object Transactions {
  private val AskSeconds = 5L
}
