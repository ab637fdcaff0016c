package org.apache.spark.sql.streamgraft

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Properties
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.AtomicLong

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.kafka.clients.producer.{KafkaProducer, ProducerRecord}
import org.apache.kafka.common.errors.RecordTooLargeException
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.api.java.UDF7
import org.apache.spark.sql.catalyst.json.{CreateJacksonParser, JacksonParser, JSONOptions}
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.types.{BooleanType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** A source that is to stop at a record that it can't read. */
class MalformedRecordException(message: String) extends RuntimeException(message)

/** How a source treats such records.
  *
  * @param action fail, skip or dead_letter
  * @param schema JSON form of the stream's schema
  * @param deadLetters the topic for them, where the producer's settings lead
  */
case class MalformedSettings(
    operator: String,
    action: String,
    schema: String,
    deadLetters: String,
    producer: Map[String, String])

/** Records that are no JSON objects of their source's schema. A driver knows its sources here, each
  * by a key that other settings don't have: a query goes on with those that it began with.
  */
object MalformedRecords {
  val Function = "streamgraft_refuse_malformed"
  private val sources = new ConcurrentHashMap[String, MalformedSource]
  private val counters = new ConcurrentHashMap[(String, String), AtomicLong]
  private val producers =
    new ConcurrentHashMap[Map[String, String], KafkaProducer[Array[Byte], Array[Byte]]]

  def register(session: SparkSession): Unit = {
    // It must see each record once, so it must not be moved, or computed twice.
    val function = udf(new RefuseMalformed, BooleanType).asNondeterministic()
    session.udf.register(Function, function)
  }

  def configure(
      key: String,
      operator: String,
      action: String,
      schema: String,
      deadLetters: String,
      producer: java.util.Map[String, String]): Unit = {
    val settings =
      MalformedSettings(operator, action, schema, deadLetters, producer.asScala.toMap)
    sources.computeIfAbsent(key, _ => new MalformedSource(settings))
  }

  def source(key: String): MalformedSource = sources.get(key)

  /** The producer with some settings, which many sources may have. */
  def producer(settings: Map[String, String]): KafkaProducer[Array[Byte], Array[Byte]] =
    producers.computeIfAbsent(settings, _ => {
      val properties = new Properties
      settings.foreach { case (name, value) => properties.put(name, value) }
      new KafkaProducer(properties)
    })

  def count(operator: String, topic: String): Unit =
    counters.computeIfAbsent((operator, topic), _ => new AtomicLong).incrementAndGet()

  /** How many there were: an operator, a topic and their number in each row. */
  def counts(): Array[Array[String]] =
    counters.asScala.map { case ((operator, topic), number) =>
      Array(operator, topic, number.get.toString)
    }.toArray
}

/** A filter that no record passes: key of the source, topic, partition, offset, key, value, and what
  * is wrong (null: Spark's parser will say).
  */
class RefuseMalformed extends UDF7[String, String, Integer, java.lang.Long, Array[Byte],
    Array[Byte], String, java.lang.Boolean] {
  override def call(
      key: String,
      topic: String,
      partition: Integer,
      offset: java.lang.Long,
      recordKey: Array[Byte],
      value: Array[Byte],
      problem: String): java.lang.Boolean = {
    MalformedRecords.source(key).refuse(topic, partition, offset, recordKey, value, problem)
    false
  }
}

class MalformedSource(val settings: MalformedSettings) extends Logging {
  private class Batch(val id: String) {
    val seen: java.util.Set[Long] = ConcurrentHashMap.newKeySet[Long]
  }

  /** A record that was set aside: what its letter consists of. */
  private case class Refused(
      topic: String,
      partition: Int,
      offset: Long,
      key: Array[Byte],
      value: Array[Byte],
      error: String)

  private val NoObject = "it is not a JSON object"
  /** In letters: Spark's words may have the whole value in them. */
  private val LongestError = 4000
  private val schema = StructType.fromString(settings.schema)
  private val batches = new ConcurrentHashMap[String, Batch]
  private val waiting: java.util.Set[Long] = ConcurrentHashMap.newKeySet[Long]
  @volatile private var failure: Exception = _
  private val tooLarge = new ConcurrentLinkedQueue[Refused]
  private lazy val producer = MalformedRecords.producer(settings.producer)

  def refuse(
      topic: String,
      partition: Int,
      offset: Long,
      key: Array[Byte],
      value: Array[Byte],
      problem: String): Unit = {
    lazy val error = Option(problem).getOrElse(why(value))
    if (settings.action == "fail") throw new MalformedRecordException(
      s"record $offset of $topic/$partition is malformed: $error. Mend what writes it, or" +
        s" give the source '${settings.operator}' malformed=\"dead_letter\" or \"skip\"")
    if (isNew(topic, partition, offset)) {
      MalformedRecords.count(settings.operator, topic)
      if (settings.action == "dead_letter") setAside(topic, partition, offset, key, value, error)
    }
  }

  /** False if another scan of the same batch has met it. */
  private def isNew(topic: String, partition: Int, offset: Long): Boolean = {
    val context = TaskContext.get()
    val id = s"${context.getLocalProperty("spark.jobGroup.id")}" +
      s" ${context.getLocalProperty("streaming.sql.batchId")}"
    val batch = batches.compute(s"$topic/$partition", (place, known) =>
      if (known != null && known.id == id) known
      else {
        logWarning(s"malformed records in $place from offset $offset on: ${settings.action}")
        new Batch(id)
      })
    batch.seen.add(offset)
  }

  private def setAside(
      topic: String,
      partition: Int,
      offset: Long,
      key: Array[Byte],
      value: Array[Byte],
      error: String): Unit = {
    val task = TaskContext.get()
    if (waiting.add(task.taskAttemptId())) {
      // Before its batch is committed.
      task.addTaskCompletionListener[Unit](done => {
        waiting.remove(done.taskAttemptId())
        producer.flush()
        while (!tooLarge.isEmpty) sendSmaller()
        check()
      })
    }
    check()
    send(Refused(topic, partition, offset, key, value, error.take(LongestError)))
  }

  private def send(refused: Refused): Unit = {
    val headers = Seq(
      "streamgraft.operator" -> settings.operator,
      "streamgraft.topic" -> refused.topic,
      "streamgraft.partition" -> refused.partition.toString,
      "streamgraft.offset" -> refused.offset.toString,
      "streamgraft.error" -> refused.error)
    val all: Iterable[Header] =
      headers.map { case (name, text) => new RecordHeader(name, text.getBytes(UTF_8)) }
    val letter =
      new ProducerRecord(settings.deadLetters, null, refused.key, refused.value, all.asJava)
    producer.send(letter, (_, error) => error match {
      case null =>
      case _: RecordTooLargeException if refused.value != null || refused.key != null =>
        tooLarge.add(refused)
      case other => failure = other
    })
  }

  /** Without their values, and those that have none any more without their keys. What is too large
    * for its topic would stop the source for ever.
    */
  private def sendSmaller(): Unit = {
    var refused = tooLarge.poll()
    while (refused != null) {
      send(
        if (refused.value != null)
          refused.copy(value = null, error = tooLargeError(refused, s"its ${refused.value.length}"))
        else refused.copy(key = null, error = tooLargeError(refused, s"its key's ${refused.key.length}")))
      refused = tooLarge.poll()
    }
    producer.flush()
  }

  private def tooLargeError(refused: Refused, whose: String): String =
    s"${refused.error} ($whose bytes are more than this topic takes)"

  private def check(): Unit = {
    val error = failure
    if (error != null) {
      failure = null
      throw new IllegalStateException(
        s"malformed records can't be written to ${settings.deadLetters}: ${error.getMessage}",
        error)
    }
  }

  /** What Spark's parser says. It is asked only for records that it has refused. */
  private def why(value: Array[Byte]): String = {
    val options = new JSONOptions(Map("mode" -> "FAILFAST"), "UTC", "")
    val text = UTF8String.fromBytes(value)
    try {
      new JacksonParser(schema, options, false)
        .parse(text, CreateJacksonParser.utf8String, (record: UTF8String) => record)
      NoObject
    } catch {
      case NonFatal(error) => said(error).lastOption.getOrElse(NoObject)
    }
  }

  /** The first line of each message, the cause's last. One without words has its cause's name. */
  private def said(error: Throwable): Seq[String] = if (error == null) Nil else {
    val cause = error.getCause
    val message = Option(error.getMessage).filterNot(text => cause != null && text == cause.toString)
    message.flatMap(_.linesIterator.nextOption()).toSeq ++ said(cause)
  }
}
