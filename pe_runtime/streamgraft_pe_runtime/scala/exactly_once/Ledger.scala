package org.apache.spark.sql.kafka010.exactlyonce

import java.time.Duration
import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.{Admin, ListConsumerGroupOffsetsOptions, ListConsumerGroupOffsetsSpec}
import org.apache.kafka.clients.consumer.{ConsumerGroupMetadata, OffsetAndMetadata}
import org.apache.kafka.clients.producer.KafkaProducer

/** The last batch that is written. `plan`: checksum of what it read; in real-time mode, where a
  * batch is many transactions, the positions in the source.
  */
case class Entry(incarnation: String, batch: Long, plan: String)

object Entry {
  val NoBatch: Long = -1
  val NoPlan = "-"
  /** None has it: to read whatever is there. */
  val NoIncarnation = ""
  def first(incarnation: String): Entry = Entry(incarnation, NoBatch, NoPlan)

  /** Of those of one incarnation the newest is the greatest: batches go up, and in real-time mode
    * that of which much is written.
    */
  private val order: Ordering[Entry] = Ordering.by { entry =>
    val written = RealTimeOutlet.positions(entry.plan).values
    (entry.batch, written.map(_.offset).sum, written.map(_.rows).sum)
  }
  def newest(entries: Iterable[Entry]): Option[Entry] = entries.maxOption(order)
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

  /** The entry of the last transaction of an incarnation, or that of another which is in its place.
    *
    * A sink that is given another topic has its ledger there from then on; what it had noted before
    * stays where it was. So it counts what is newest at any topic.
    */
  def read(incarnation: String): Option[Entry] = {
    val admin = Admin.create(target.admin)
    try {
      val stable = new ListConsumerGroupOffsetsOptions().requireStable(true)
      val found = admin.listConsumerGroupOffsets(identity.ledgerGroup, stable)
      val entries = for {
        (partition, position) <- found.partitionsToOffsetAndMetadata().get().asScala
        noted <- Option(position)
      } yield partition -> parsed(noted)
      Entry.newest(entries.values.filter(_.incarnation == incarnation))
        .orElse(entries.get(identity.ledger))
    } finally admin.close()
  }

  private def parsed(position: OffsetAndMetadata): Entry = position.metadata.split(' ') match {
    case Array(incarnation, plan) => Entry(incarnation, position.offset - 1, plan)
    case _ => Entry("", position.offset - 1, "")
  }
}

/** For Python, where each look at an object of ours is a call. */
object Ledgers {
  /** The entries of ledgers, one a line: group, topic, number of the batch, incarnation and plan. */
  def read(client: JMap[String, Object], groups: String): String = {
    val admin = Admin.create(client)
    try {
      val asked = groups.split(',').map(_ -> new ListConsumerGroupOffsetsSpec).toMap.asJava
      val lines = for {
        (group, found) <- admin.listConsumerGroupOffsets(asked).all().get().asScala
        (partition, position) <- found.asScala if position != null
        noted = position.metadata.replace('\n', ' ')
      } yield s"$group ${partition.topic} ${position.offset - 1} $noted"
      lines.mkString("\n")
    } finally admin.close(Duration.ZERO)
  }
}
