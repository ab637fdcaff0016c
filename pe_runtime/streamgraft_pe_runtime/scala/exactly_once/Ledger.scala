package org.apache.spark.sql.kafka010.exactlyonce

import java.util.{Map => JMap}

import org.apache.kafka.clients.admin.{Admin, ListConsumerGroupOffsetsOptions}
import org.apache.kafka.clients.consumer.{ConsumerGroupMetadata, OffsetAndMetadata}
import org.apache.kafka.clients.producer.KafkaProducer

/** The last batch that is written. `plan`: checksum of what it read; in real-time mode, where a
  * batch is many transactions, the positions in the source.
  */
case class Entry(incarnation: String, batch: Long, plan: String)

object Entry {
  val NoBatch: Long = -1
  val NoPlan = "-"
  def first(incarnation: String): Entry = Entry(incarnation, NoBatch, NoPlan)
}

/** Where a query's last batch is noted: in the committed offset of a consumer group of its own. */
class Ledger(target: Target, identity: Identity) {
  override def toString: String = s"consumer group ${identity.ledgerGroup} at ${target.brokers}"

  /** Add the entry to the producer's transaction. */
  def note(producer: KafkaProducer[_, _], entry: Entry): Unit = {
    val position = new OffsetAndMetadata(entry.batch + 1, s"${entry.incarnation} ${entry.plan}")
    producer.sendOffsetsToTransaction(
      JMap.of(identity.ledger, position), new ConsumerGroupMetadata(identity.ledgerGroup))
  }

  /** The entry of the last transaction that was committed. */
  def read(): Option[Entry] = {
    val admin = Admin.create(target.admin)
    try {
      val stable = new ListConsumerGroupOffsetsOptions().requireStable(true)
      val found = admin.listConsumerGroupOffsets(identity.ledgerGroup, stable)
      Option(found.partitionsToOffsetAndMetadata().get().get(identity.ledger)).map { position =>
        position.metadata.split(' ') match {
          case Array(incarnation, plan) => Entry(incarnation, position.offset - 1, plan)
          case _ => Entry("", position.offset - 1, "")
        }
      }
    } finally admin.close()
  }
}
