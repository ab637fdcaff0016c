/** Drops records that a real-time hop has sent again after a crash.
  *
  * A hop that writes at least once tells of each record which row of which source record it is
  * ([[LooseOutlet]]). In a partition the rows of a lane (one partition of one source) come in order,
  * and again in order from the beginning of a batch that was cut off. So a row that is not newer
  * than the newest of its lane was there before.
  *
  * The newest of each lane at an offset are a function of the records before it. They are kept in
  * memory while records are read one after the other; whoever begins elsewhere reads what is missing
  * between. A note beside the shard's checkpoint says what they were at some offset, so that this is
  * not the whole topic: it need be no newer than any, and several owners may write it.
  */
package org.apache.spark.sql.kafka010.repeats

import java.nio.charset.StandardCharsets.US_ASCII
import java.nio.file.{Files, NoSuchFileException, Path, Paths, StandardCopyOption}
import java.time.Duration
import java.util.concurrent.ConcurrentHashMap
import java.util.{Map => JMap, UUID}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.serialization.ByteArrayDeserializer
import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.api.java.UDF4
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.kafka010.exactlyonce.LooseOutlet
import org.apache.spark.sql.types.BooleanType

/** One partition of one source, read with one checkpoint. */
case class Lane(incarnation: String, scan: Int, topic: String, partition: Int)

/** A row: of so many rows of a source record the last one. */
case class Row(offset: Long, rows: Int) {
  def isAfter(other: Row): Boolean =
    if (offset != other.offset) offset > other.offset else rows > other.rows
}

/** The newest rows of all lanes among the records before an offset. */
case class Newest(next: Long, rows: Map[Lane, Row]) {
  /** Take in a record; `origin` is null if it does not say what it is. */
  def after(offset: Long, origin: Array[Byte]): (Newest, Boolean) =
    if (origin == null) (Newest(offset + 1, rows), true)
    else {
      val (lane, row) = Newest.parsed(new String(origin, US_ASCII))
      val isNew = rows.get(lane).forall(row.isAfter)
      (Newest(offset + 1, if (isNew) rows.updated(lane, row) else rows), isNew)
    }

  def text: String = (next.toString +: rows.toSeq.map { case (lane, row) =>
    Seq(lane.incarnation, lane.scan, lane.topic, lane.partition, row.offset, row.rows).mkString("/")
  }).mkString("\n")
}

object Newest {
  val Empty: Newest = Newest(0, Map.empty)

  def parsed(text: String): (Lane, Row) = {
    val Array(incarnation, scan, topic, partition, offset, rows) = text.split('/')
    (Lane(incarnation, scan.toInt, topic, partition.toInt), Row(offset.toLong, rows.toInt))
  }

  def of(text: String): Newest = {
    val lines = text.split('\n')
    Newest(lines.head.toLong, lines.tail.map(parsed).toMap)
  }
}

/** A filter of the records of a stream, to be called with the name of its reader, partition, offset
  * and what the record says of its origin.
  */
class IsNew extends UDF4[String, Integer, java.lang.Long, Array[Byte], java.lang.Boolean] {
  override def call(
      reader: String, partition: Integer, offset: java.lang.Long,
      origin: Array[Byte]): java.lang.Boolean =
    Repeats.isNew(reader, partition, offset, origin)
}

object Repeats {
  val Function = "streamgraft_is_new"
  private val readers = new ConcurrentHashMap[String, Reader]
  @volatile private var stage: Option[Path] = None
  private val running = ThreadLocal.withInitial[Map[String, Run]](() => Map.empty)

  def register(session: SparkSession): Unit = {
    // It must see each record, before other conditions: what is the newest is kept for all scans.
    session.udf.register(Function, udf(new IsNew, BooleanType).asNondeterministic())
  }

  /** To be called before a plan with this reader runs.
    *
    * @param name that no reader of another topic has
    * @param options of a consumer
    * @param ofShards whether a partition is the shard of its number; else all are shard 0's
    */
  def open(name: String, topic: String, options: JMap[String, String], ofShards: Boolean): Unit =
    readers.compute(name, (_, known) => {
      val reader = if (known == null) new Reader(name, topic) else known
      reader.options = options.asScala.toMap
      reader.ofShards = ofShards
      reader
    })

  /** Say where the stage that this driver runs has the folders of its shards. */
  def keepNotes(folder: String): Unit = stage = Some(Paths.get(folder))

  def notes: Option[Path] = stage

  def isNew(name: String, partition: Int, offset: Long, origin: Array[Byte]): Boolean = {
    val task = TaskContext.get()
    val known = running.get().get(name)
    val run = known.filter(_.goesOn(task.taskAttemptId(), partition, offset))
    run.getOrElse {
      known.foreach(_.end())
      val begun = readers.get(name).partition(partition).begin(task.taskAttemptId(), offset)
      running.set(running.get().updated(name, begun))
      task.addTaskCompletionListener[Unit](_ => begun.end())
      begun
    }.isNew(offset, origin)
  }
}

/** Reads one stream. */
class Reader(name: String, topic: String) {
  @volatile var options: Map[String, String] = Map.empty
  @volatile var ofShards = false
  private val partitions = new ConcurrentHashMap[Int, Partition]

  def partition(number: Int): Partition = partitions.computeIfAbsent(number, _ =>
    new Partition(new TopicPartition(topic, number), () => options, () => note(number)))

  private def note(partition: Int): Option[Path] = Repeats.notes.map(
    _.resolve(if (ofShards) partition.toString else "0").resolve(s"repeats-$name-$partition"))
}

/** Reads one partition of a stream. */
class Partition(place: TopicPartition, options: () => Map[String, String], note: () => Option[Path])
    extends Logging {
  private var known = Seq.empty[Newest]
  private var notedAt = 0L

  /** A task begins with a record. */
  def begin(task: Long, offset: Long): Run = synchronized {
    // Mostly a task begins where the one before has ended.
    val mine = known.filter(_.next <= offset)
    val all = if (mine.exists(_.next == offset)) mine else mine ++ noted().filter(_.next <= offset)
    val now = caughtUp(all.maxByOption(_.next).getOrElse(Newest.Empty), offset)
    keep(now)
    write(now)
    new Run(task, place.partition, now, (end, dropped) => {
      keep(end)
      if (dropped > 0) logWarning(s"$place: $dropped records were there before")
    })
  }

  /** Tasks begin where others have ended, or begun. */
  private def keep(newest: Newest): Unit =
    synchronized { known = (newest +: known).take(Partition.Kept) }

  /** Read what comes before an offset. */
  private def caughtUp(from: Newest, until: Long): Newest =
    if (from.next >= until) from
    else {
      logInfo(s"$place: records from ${from.next} to $until are looked through for repeats")
      val consumer = new KafkaConsumer[Array[Byte], Array[Byte]](
        (options() ++ Partition.Plain).asInstanceOf[Map[String, Object]].asJava,
        new ByteArrayDeserializer, new ByteArrayDeserializer)
      try {
        consumer.assign(java.util.List.of(place))
        val first = consumer.beginningOffsets(java.util.List.of(place)).get(place)
        consumer.seek(place, math.max(from.next, first))
        var now = from
        var quietSince = System.nanoTime()
        while (consumer.position(place) < until) {
          val records = consumer.poll(Partition.Wait).records(place).asScala
          if (records.nonEmpty) quietSince = System.nanoTime()
          else if (System.nanoTime() - quietSince > Partition.Patience.toNanos)
            throw new IllegalStateException(s"$place can't be read from ${consumer.position(place)}")
          for (record <- records if record.offset < until) {
            val header = record.headers().lastHeader(LooseOutlet.Header)
            now = now.after(record.offset, if (header == null) null else header.value)._1
          }
        }
        now.copy(next = until)
      } finally consumer.close(Partition.Wait)
    }

  private def noted(): Option[Newest] =
    try note().map(file => Newest.of(new String(Files.readAllBytes(file), US_ASCII)))
    catch {
      case _: NoSuchFileException => None
      case NonFatal(error) => logWarning(s"${note()} can't be read: $error"); None
    }

  /** Note what is known, from time to time. */
  private def write(newest: Newest): Unit =
    for (file <- note() if System.nanoTime() - notedAt > Partition.NoteEvery.toNanos) try {
      val draft = file.resolveSibling(s".${file.getFileName}-${UUID.randomUUID()}")
      try {
        Files.write(draft, newest.text.getBytes(US_ASCII))
        Files.move(draft, file, StandardCopyOption.ATOMIC_MOVE)
        notedAt = System.nanoTime()
      } finally Files.deleteIfExists(draft)
    } catch { case NonFatal(error) => logWarning(s"$file can't be written: $error") }
}

object Partition {
  private val Kept = 8
  private val Wait = Duration.ofSeconds(1)
  private val Patience = Duration.ofSeconds(60)
  private val NoteEvery = Duration.ofSeconds(10)
  private val Plain = Map("enable.auto.commit" -> "false", "isolation.level" -> "read_committed")
}

/** A task's way through a partition; its records come in order. A task that reads them again, for
  * another branch of its plan, has another way.
  */
class Run(task: Long, partition: Int, begun: Newest, ended: (Newest, Int) => Unit) {
  private var now = begun
  private var dropped = 0
  private var isOver = false

  def goesOn(inTask: Long, inPartition: Int, offset: Long): Boolean =
    inTask == task && inPartition == partition && offset >= now.next

  def isNew(offset: Long, origin: Array[Byte]): Boolean = {
    val (newest, isNew) = now.after(offset, origin)
    now = newest
    if (!isNew) dropped += 1
    isNew
  }

  def end(): Unit = if (!isOver) {
    isOver = true
    ended(now, dropped)
  }
}
