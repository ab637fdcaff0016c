package org.apache.spark.sql.kafka010.exactlyonce

import scala.collection.mutable.ArrayBuffer

import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.utils.Utils
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.kafka010.{KafkaDataWriterCommitMessage, KafkaRowWriter}
import org.apache.spark.sql.types.StructType

/** A task's side of a batch: rows become records, which the owner sends. */
class RecordWriter(owner: Owner, schema: StructType, batch: Long)
    extends RowWriter(owner.topic, schema) {
  private val targetColumn = schema.getFieldIndex("target")
  private val records = owner.outlets.map(_ => new ArrayBuffer[Record])

  override def write(row: InternalRow): Unit = {
    val record = recordOf(row)
    records(targetColumn.fold(0)(row.getInt)) += record
    if (owner.isFullWith(bytesOf(record))) for ((outlet, some) <- owner.outlets.zip(records)) {
      if (some.nonEmpty) outlet.send(batch, some)
      some.clear()
    }
  }

  override def commit(): WriterCommitMessage = {
    owner.hold(records)
    KafkaDataWriterCommitMessage
  }

  /** About what a record takes in memory; 200 for the objects that it is made of. */
  private def bytesOf(record: Record): Long =
    200L + (if (record.key == null) 0 else record.key.length) +
      (if (record.value == null) 0 else record.value.length)
}

/** Makes records of rows. A negative number of a partition has one chosen, among so many: those that
  * the readers of the topic know, though it may have got more.
  */
abstract class RowWriter(topic: Option[String], schema: StructType)
    extends KafkaRowWriter(toAttributes(schema), topic) with DataWriter[InternalRow] {
  override def abort(): Unit = {}
  override def close(): Unit = {}

  private var withoutKey = 0

  /** The partition of a record, as Kafka's own partitioner has it if one is chosen by its key. */
  private def chosen(wanted: Int, key: Array[Byte]): Int =
    if (wanted >= 0) wanted
    else if (key == null) anyOf(-wanted)
    else Utils.toPositive(Utils.murmur2(key)) % -wanted

  /** The partition of a record without a key. */
  protected def anyOf(partitions: Int): Int = {
    withoutKey = (withoutKey + 1) % partitions
    withoutKey
  }

  /** Columns as KafkaRowWriter has them: topic, key, value, headers, partition. */
  protected def recordOf(columns: InternalRow): Record = {
    val row = projection(columns)
    if (row.isNullAt(0)) throw new NotExactlyOnce("a row has no topic, and the sink none for all")
    val (key, value) = (row.getBinary(1), row.getBinary(2))
    val partition: Integer = if (row.isNullAt(4)) null else chosen(row.getInt(4), key)
    val record = new ProducerRecord(row.getUTF8String(0).toString, partition, key, value)
    if (!row.isNullAt(3)) {
      val headers = row.getArray(3)
      for (index <- 0 until headers.numElements()) {
        val header = headers.getStruct(index, 2)
        val pair: Header = new RecordHeader(header.getUTF8String(0).toString, header.getBinary(1))
        record.headers().add(pair)
      }
    }
    record
  }
}
