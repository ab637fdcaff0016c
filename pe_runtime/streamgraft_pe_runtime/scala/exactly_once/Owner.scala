package org.apache.spark.sql.kafka010.exactlyonce

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

/** The sinks of the queries that run in this JVM. */
object Owners {
  private val owners = new ConcurrentHashMap[String, Owner]

  /** The sink of a new run of a query: it fences those of earlier runs, wherever they were. */
  def open(settings: Settings): Owner = {
    val owner = new Owner(settings)
    owners.put(owner.key, owner)
    owner
  }

  def apply(key: String): Owner = Option(owners.get(key)).getOrElse(
    throw new NotExactlyOnce("the query that this task belongs to has ended, or runs elsewhere"))

  /** To be called when a query with this checkpoint has ended: its producers end, too.
    *
    * @param ended in real-time mode where its last batch ended, by lane as in a ledger; null if it
    *              was cut off within a batch
    * @return whether a ledger of real-time mode is over
    */
  def close(checkpoint: String, ended: String): Boolean = {
    val positions = Option(ended).map(RealTimeOutlet.positions)
    owners.values.asScala.filter(_.checkpoint == checkpoint)
      .map(_.close(positions)).exists(identity)
  }

  def remove(owner: Owner): Unit = owners.remove(owner.key)
}

/** Writes the batches of one run of a query. */
class Owner(settings: Settings) {
  val key: String = UUID.randomUUID().toString
  val checkpoint: String = settings.checkpoint.toString
  val topic: Option[String] = settings.topic
  private val files = new Checkpoint(settings.checkpoint)
  /** In real-time mode; there are no others then. */
  val realTime: Option[RealTimeOutlet] = for {
    millis <- settings.commitMillis
    identity <- settings.targets.head.identity
  } yield new RealTimeOutlet(settings.targets.head, identity, files, millis)
  /** In real-time mode as well, if that writes at least once. */
  val loose: Option[LooseOutlet] =
    Option.when(settings.commitMillis.isDefined && realTime.isEmpty)(
      new LooseOutlet(
        settings.targets.head, settings.toldTopics, settings.incarnation, settings.toldSince, files))
  private val main: Option[TransactionalOutlet] = for {
    target <- settings.targets.find(_.name == Target.Main) if settings.commitMillis.isEmpty
    identity <- target.identity
  } yield new TransactionalOutlet(target, identity, files, main = None)
  val outlets: IndexedSeq[Outlet] =
    if (settings.commitMillis.isDefined) IndexedSeq.empty
    else settings.targets.map(target =>
      main.filter(_ => target.name == Target.Main).getOrElse(Outlet(target, files, main)))
  private val held = outlets.map(_ => new ArrayBuffer[Records])
  private val heldBytes = new AtomicLong

  def begin(): Unit = {
    held.foreach(_.clear())
    heldBytes.set(0)
    outlets.foreach(_.begin())
  }

  /** Whether so many bytes more are too many to keep until the end of the batch. */
  def isFullWith(bytes: Long): Boolean = heldBytes.addAndGet(bytes) > settings.bufferBytes

  /** Keep what a task has computed, by target. */
  def hold(records: IndexedSeq[Records]): Unit = synchronized {
    for ((buffers, more) <- held.zip(records)) if (more.nonEmpty) buffers += more
  }

  /** Send what is kept, and end the transactions. Each target has the batch then, or an exception
    * says that one has not; the batch comes again, and only that one takes it.
    *
    * The main target is last, and takes part though no record is for it. So what it has, all have,
    * whichever target an edit moves a sink to before the batch comes again; and a sink that fails
    * keeps nothing from that batch.
    */
  def commit(batch: Long): Unit = synchronized {
    // Whose ledger has later batches says so before any other commits this one. That of a sink with
    // few records may be far behind, and would have them twice behind the newest checkpoint.
    val taking = outlets.zip(held).collect {
      case (outlet: TransactionalOutlet, some) if some.nonEmpty || outlet.isIn(batch) => outlet
    }
    if (taking.nonEmpty) (taking ++ main).foreach(_.has(batch))
    val (last, first) = outlets.zip(held).partition { case (outlet, _) => main.contains(outlet) }
    for ((outlet, buffers) <- first ++ last) {
      buffers.foreach(outlet.send(batch, _))
      buffers.clear()
      if (main.contains(outlet) && outlets.exists(_.isIn(batch))) main.foreach(_.enter(batch))
      outlet.commit(batch)
    }
    realTime.foreach(_.end())
    loose.foreach(_.commit())
  }

  /** @param ended where the last batch has ended; none if one was cut off
    * @return whether the ledger of real-time mode is over: others leave its mark to whom it is of
    */
  def close(ended: Option[Map[Lane, Position]]): Boolean = {
    Owners.remove(this)
    outlets.foreach(_.close())
    loose.foreach(_.close())
    realTime.exists(_.close(ended))
  }
}
