package org.apache.spark.sql.kafka010

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.Offset

/** What the connector keeps to its own package. */
object KafkaShards {
  /** Whether a source's offset is one of Kafka's. */
  def isKafka(end: Offset): Boolean = end.isInstanceOf[KafkaSourceOffset]

  /** All partitions that a query reads, in order, also those without new records. */
  def owned(end: Offset): Seq[Int] =
    end.asInstanceOf[KafkaSourceOffset].partitionToOffsets.keys.map(_.partition).toSeq.sorted

  /** The most records that a batch may have of a partition; None if that can't be told. */
  def most(start: Offset, end: Offset): Option[Long] = (start, end) match {
    case (from: KafkaSourceOffset, to: KafkaSourceOffset) =>
      val counts = to.partitionToOffsets.map { case (partition, until) =>
        until - from.partitionToOffsets.getOrElse(partition, 0L)
      }
      Some(counts.maxOption.getOrElse(0L))
    case _ => None
  }

  /** The partition that a range of records is of. */
  def of(range: InputPartition): Int =
    range.asInstanceOf[KafkaBatchInputPartition].offsetRange.topicPartition.partition
}
