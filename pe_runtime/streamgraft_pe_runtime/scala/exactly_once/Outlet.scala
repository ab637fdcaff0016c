package org.apache.spark.sql.kafka010.exactlyonce

import java.time.Duration

import org.apache.kafka.clients.producer.{Callback, KafkaProducer}

/** The way to one target. `send` may be called by several tasks at once. */
trait Outlet {
  def begin(): Unit
  /** Whether a batch has begun in a transaction here. */
  def isIn(batch: Long): Boolean
  def send(batch: Long, records: Records): Unit
  def commit(batch: Long): Unit
  def close(): Unit
}

object Outlet {
  val CloseWithin: Duration = Duration.ofSeconds(2)

  /** @param main the way to the shared target */
  def apply(target: Target, checkpoint: Checkpoint, main: Option[TransactionalOutlet]): Outlet =
    target.identity.fold[Outlet](new PlainOutlet(target))(
      new TransactionalOutlet(target, _, checkpoint, main))
}

/** At least once: a batch that comes again is written again. */
class PlainOutlet(target: Target) extends Outlet {
  private lazy val producer = new KafkaProducer[Array[Byte], Array[Byte]](target.producer)
  @volatile private var used = false
  @volatile private var failure: Exception = _
  private val callback: Callback = (_, error) => if (error != null) failure = error

  override def begin(): Unit = failure = null

  override def isIn(batch: Long): Boolean = false

  override def send(batch: Long, records: Records): Unit = {
    used = true
    records.foreach(producer.send(_, callback))
  }

  override def commit(batch: Long): Unit = if (used) {
    producer.flush()
    if (failure != null) throw failure
  }

  override def close(): Unit = if (used) producer.close(Outlet.CloseWithin)
}
