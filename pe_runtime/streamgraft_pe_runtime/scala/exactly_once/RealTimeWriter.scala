package org.apache.spark.sql.kafka010.exactlyonce

import org.apache.spark.sql.api.java.UDF4
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.kafka010.KafkaDataWriterCommitMessage
import org.apache.spark.sql.types.StructType

/** Which source record a task works on. In real-time mode a task takes the next one when all rows of
  * the one before are written.
  */
object Origin {
  private class Current { var lane = Lane(0, "", -1); var offset = -1L }
  private val current = ThreadLocal.withInitial[Current](() => new Current)

  def note(scan: Int, topic: String, partition: Int, offset: Long): Unit = {
    val now = current.get()
    if (partition != now.lane.partition || scan != now.lane.scan || topic != now.lane.topic)
      now.lane = Lane(scan, topic, partition)
    now.offset = offset
  }

  /** The lane, which is the same object for all records of a task in a row, and the offset in it. */
  def get(): (Lane, Long) = {
    val now = current.get()
    (now.lane, now.offset)
  }
}

/** A filter that lets everything pass, and notes where it is from: the first thing in a plan. The
  * number of the scan is the same in each run, and no other scan's.
  */
class NoteOrigin extends UDF4[Integer, String, Integer, java.lang.Long, java.lang.Boolean] {
  override def call(
      scan: Integer, topic: String, partition: Integer, offset: java.lang.Long): java.lang.Boolean = {
    Origin.note(scan, topic, partition, offset)
    true
  }
}

/** Knows where the row that it writes comes from. */
abstract class OriginWriter(owner: Owner, schema: StructType)
    extends RowWriter(owner.topic, schema) {
  protected var lane: Lane = Lane(0, "", -1)
  protected var position: Position = Position(-1, 0)

  /** To be called for each row, before it is written. */
  protected def advance(): Unit = {
    val (origin, offset) = Origin.get()
    if (origin ne lane) {
      lane = origin
      position = Position(-1, 0)
    }
    position = Position(offset, if (offset == position.offset) position.rows + 1 else 1)
  }
}

/** A task's side of a batch in real-time mode, exactly once. */
class RealTimeWriter(owner: Owner, outlet: RealTimeOutlet, schema: StructType)
    extends OriginWriter(owner, schema) {
  override def write(row: InternalRow): Unit = {
    advance()
    outlet.write(lane, position, recordOf(row))
  }

  override def commit(): WriterCommitMessage = {
    outlet.commit()
    KafkaDataWriterCommitMessage
  }
}
