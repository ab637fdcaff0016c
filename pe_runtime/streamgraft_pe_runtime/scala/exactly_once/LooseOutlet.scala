package org.apache.spark.sql.kafka010.exactlyonce

import java.nio.charset.StandardCharsets.US_ASCII
import java.time.Duration
import java.util.{HashMap => JHashMap}

import scala.collection.mutable

import org.apache.kafka.clients.producer.{Callback, KafkaProducer, ProducerConfig}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.kafka010.{repeats, KafkaDataWriterCommitMessage}
import org.apache.spark.sql.kafka010.repeats.{Row, Told}
import org.apache.spark.sql.types.StructType

/** Real-time mode, at least once: each record is sent at once, and again if its batch comes again.
  *
  * In topics with readers of ours records say where they come from, and these drop what came before
  * (scala/repeats). They go by the newest, so in each partition what is written must be the rows of
  * a lane up to some row, without a gap: Kafka keeps the order of one producer, and a record that
  * can't be written is its last.
  *
  * @param told the topics in which records say so
  * @param incarnation tells the checkpoint from any other
  * @param since time in seconds: what comes again was not written before it
  */
class LooseOutlet(
    target: Target, told: Set[String], incarnation: String, since: Long, checkpoint: Checkpoint) {
  private lazy val producer = {
    val options = new JHashMap(target.producer)
    if (told.nonEmpty) {
      checkpoint.markLoose(since)
      options.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "true")
    }
    used = true
    new KafkaProducer[Array[Byte], Array[Byte]](options)
  }
  @volatile private var used = false
  @volatile private var failure: Exception = _
  private val callback: Callback = (_, error) => if (error != null) failed(error)

  /** Send a row, the `rows`-th of its source record in its topic. */
  def write(lane: Lane, origin: Position, record: Record): Unit = {
    if (failure != null) throw failure
    val sent = if (told(record.topic)) withOrigin(record, lane, origin) else record
    try producer.send(sent, callback)
    catch { case _: IllegalStateException if failure != null => throw failure }
  }

  private def withOrigin(record: Record, lane: Lane, origin: Position): Record = {
    record.headers().add(LooseOutlet.Header, headerOf(lane, origin))
    record
  }

  /** Wait until all are written. */
  def commit(): Unit = {
    if (used && failure == null) producer.flush()
    if (failure != null) throw failure
  }

  def close(): Unit = if (used) producer.close(Outlet.CloseWithin)

  /** Without the batch: one that runs again may end before what was written when it was cut off, and
    * the next one goes on there.
    */
  private def headerOf(lane: Lane, origin: Position): Array[Byte] = Told(
    repeats.Lane(incarnation, lane.scan, lane.topic, lane.partition),
    Row(origin.offset, origin.rows, Told.Version), since).text.getBytes(US_ASCII)

  /** In the thread that sends: it sends nothing more. */
  private def failed(error: Exception): Unit = if (failure == null) {
    failure = error
    producer.close(Duration.ZERO)
  }
}

object LooseOutlet {
  val Header = "streamgraft-origin"
}

/** A task's side of a batch in real-time mode, at least once. */
class LooseWriter(owner: Owner, outlet: LooseOutlet, schema: StructType)
    extends OriginWriter(owner, schema) {
  /** How many rows of the source record each topic has. Readers know one topic, and an edit may come
    * while a batch is cut off: another output more or less must not change the numbers there.
    */
  private val rows = mutable.HashMap.empty[String, Int]

  override def write(row: InternalRow): Unit = {
    advance()
    if (position.rows == 1) rows.clear()
    val record = recordOf(row)
    rows(record.topic) = rows.getOrElse(record.topic, 0) + 1
    outlet.write(lane, position.copy(rows = rows(record.topic)), record)
  }

  /** A row must come to the same partition again: there it is looked for. */
  override protected def anyOf(partitions: Int): Int = Math.floorMod(position.offset, partitions)

  override def commit(): WriterCommitMessage = {
    outlet.commit()
    KafkaDataWriterCommitMessage
  }
}
