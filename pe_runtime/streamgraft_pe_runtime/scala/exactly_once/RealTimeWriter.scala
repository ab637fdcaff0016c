package org.apache.spark.sql.kafka010.exactlyonce

import org.apache.spark.sql.api.java.UDF3
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.kafka010.KafkaDataWriterCommitMessage
import org.apache.spark.sql.types.StructType

/** Which source record a task works on. In real-time mode a task takes the next one when all rows of
  * the one before are written.
  */
object Origin {
  private class Current { var topic = ""; var partition = -1; var offset = -1L }
  private val current = ThreadLocal.withInitial[Current](() => new Current)

  def note(topic: String, partition: Int, offset: Long): Unit = {
    val now = current.get()
    now.topic = topic
    now.partition = partition
    now.offset = offset
  }

  /** Topic and partition, and the offset in it. */
  def get(): (String, Int, Long) = {
    val now = current.get()
    (now.topic, now.partition, now.offset)
  }
}

/** A filter that lets everything pass, and notes where it is from: the first thing in a plan. */
class NoteOrigin extends UDF3[String, Integer, java.lang.Long, java.lang.Boolean] {
  override def call(topic: String, partition: Integer, offset: java.lang.Long): java.lang.Boolean = {
    Origin.note(topic, partition, offset)
    true
  }
}

/** A task's side of a batch in real-time mode. A column `branch` tells apart what reads the same
  * partition twice.
  */
class RealTimeWriter(owner: Owner, outlet: RealTimeOutlet, schema: StructType)
    extends RowWriter(owner.topic, schema) {
  private val branchColumn = schema.getFieldIndex("branch")
  private var lane = Lane(0, "", -1)
  private var position = Position(-1, 0)

  override def write(row: InternalRow): Unit = {
    val (topic, partition, offset) = Origin.get()
    if (partition != lane.partition || topic != lane.topic) {
      lane = Lane(branchColumn.fold(0)(row.getInt), topic, partition)
      position = Position(-1, 0)
    }
    position = Position(offset, if (offset == position.offset) position.rows + 1 else 1)
    outlet.write(lane, position, recordOf(row))
  }

  override def commit(): WriterCommitMessage = {
    outlet.commit()
    KafkaDataWriterCommitMessage
  }
}
