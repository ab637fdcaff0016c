package org.apache.spark.sql.kafka010.exactlyonce

import java.util.{Map => JMap, UUID}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.kafka.clients.admin.AdminClientConfig
import org.apache.kafka.common.TopicPartition
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.kafka010.KafkaSourceProvider
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The options of a query's sink: `kafka.*` and `topic` as for Spark's own Kafka sink, and
  *  - checkpointLocation: the query's; it must be given as an option.
  *  - transactionalId: a name that the query keeps over all of its runs, on whatever machine, and
  *    that no other has. Without it records are written at least once.
  *  - ledgerGroup: consumer group in which it is noted what is written (default: the transactional
  *    id and `.ledger`).
  *  - ledgerTopic: a topic that lives as long as the query; the group commits to its partition 0
  *    (default: `topic`).
  *  - life: what an entry of the ledger begins with, without a space: of which life of the query it
  *    is. So whoever lost the checkpoint can see that there was one.
  *  - bufferBytes: so much of a batch, about, is kept in memory until all of it is computed;
  *    the rest is sent at once, within the transaction (default: 16 MiB).
  *  - realTime: true in real-time mode, which has one target. Rows are then told by [[NoteOrigin]].
  *  - toldTopics: topics, with commas between, whose records say where they come from, in real-time
  *    mode without a transactional id; `incarnation` tells this checkpoint from others then,
  *    and `toldSince` the time, in seconds, since when what comes again may have been written.
  *  - commitMillis: how often a transaction is committed in that mode (default: 10).
  *  - renewMillis: how long after the last batch its entry is noted again, long before the brokers
  *    forget it, and the transactional id (default: a day).
  *  - targets: JSON array of objects with options of this list, and a `name` for each. The column
  *    `target` of a row tells which one it goes to, by its place in the array. Each has a producer
  *    and a transaction of its own; that of `MAIN` is the last. Default: one, `MAIN`.
  */
case class Settings(
    checkpoint: Path,
    topic: Option[String],
    bufferBytes: Long,
    commitMillis: Option[Long],
    toldTopics: Set[String],
    incarnation: String,
    toldSince: Long,
    targets: IndexedSeq[Target])

object Settings {
  private val DefaultBufferBytes = 16L << 20

  def apply(options: CaseInsensitiveStringMap): Settings = {
    val common = CaseInsensitiveMap(options.asCaseSensitiveMap().asScala.toMap)
    val own = common.get("targets").fold(Array(JMap.of[String, String]()))(
      new ObjectMapper().readValue(_, classOf[Array[JMap[String, String]]]))
    Settings(
      new Path(required(common, "checkpointLocation")),
      common.get("topic"),
      common.get("bufferBytes").fold(DefaultBufferBytes)(_.toLong),
      Option.when(options.getBoolean("realTime", false))(options.getLong("commitMillis", 10)),
      common.get("toldTopics").fold(Set.empty[String])(_.split(',').filter(_.nonEmpty).toSet),
      common.getOrElse("incarnation", ""),
      options.getLong("toldSince", 0),
      own.toIndexedSeq.map(each => Target(CaseInsensitiveMap(common ++ each.asScala))))
  }

  def required(options: Map[String, String], name: String): String =
    options.getOrElse(name, throw new IllegalArgumentException(s"the sink needs the option $name"))
}

/** One Kafka cluster, or one set of producer options; `identity`: None for at least once. */
case class Target(
    name: String, producer: JMap[String, Object], identity: Option[Identity], renewMillis: Long) {
  def brokers: String = producer.get("bootstrap.servers").toString

  /** The same connection for a client that only asks. */
  def admin: JMap[String, Object] =
    producer.asScala.filter { case (key, _) => AdminClientConfig.configNames.contains(key) }.asJava
}

/** Under which names batches are written, and noted as written. */
case class Identity(
    transactionalId: String, ledgerGroup: String, ledger: TopicPartition, life: Option[String]) {
  /** A name for a checkpoint that begins with this ledger. */
  def newIncarnation(): String = (life.toSeq :+ UUID.randomUUID().toString).mkString("/")
}

object Target {
  private val DayMillis = 24L * 3600 * 1000
  /** Name of the one that is shared by all sinks without options of their own. */
  val Main = "MAIN"

  def apply(options: Map[String, String]): Target = {
    val producer = KafkaSourceProvider.kafkaParamsForProducer(CaseInsensitiveMap(options))
    val identity = options.get("transactionalId").map { id =>
      val topic = options.get("ledgerTopic").getOrElse(Settings.required(options, "topic"))
      val group = options.getOrElse("ledgerGroup", s"$id.ledger")
      Identity(id, group, new TopicPartition(topic, 0), options.get("life"))
    }
    for (names <- identity) {
      producer.put("transactional.id", names.transactionalId)
      producer.put("enable.idempotence", "true")
    }
    val renewMillis = options.get("renewMillis").fold(DayMillis)(_.toLong)
    Target(options.getOrElse("name", Main), producer, identity, renewMillis)
  }
}
