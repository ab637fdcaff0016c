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
  * little: it need be no newer than any, and several owners may write it.
  *
  * Without a note nothing is read until a record says what it is. It says as well since when there
  * may have been another like it: what is older is not read.
  */
package org.apache.spark.sql.kafka010.repeats

import java.nio.charset.StandardCharsets.US_ASCII
import java.nio.file.{Files, Path, Paths, StandardCopyOption}
import java.time.Duration
import java.util.concurrent.ConcurrentHashMap
import java.util.{List => JList, Map => JMap, UUID}

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.serialization.ByteArrayDeserializer
import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.api.java.UDF4
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.kafka010.exactlyonce.LooseOutlet
import org.apache.spark.sql.types.BooleanType

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
      val query = Option(task.getLocalProperty(SparkContext.SPARK_JOB_GROUP_ID))
      val place = readers.get(name).partition(partition)
      val begun = place.begin(task.taskAttemptId(), query, offset)
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
    new Partition(new TopicPartition(topic, number), () => options, () => notes(number)))

  private def notes(partition: Int): Option[Notes] = Repeats.notes.map { stage =>
    val folder = stage.resolve(if (ofShards) partition.toString else "0")
    new Notes(folder, s"repeats-$name-$partition", s"repeats-${name.split('-').head}-*-$partition")
  }
}

/** Where a reader notes what it knows, and what others have noted of the same records: an edit may
  * give a reader another name.
  *
  * @param all pattern of the names of all
  */
class Notes(folder: Path, name: String, all: String) extends Logging {
  def read(): Seq[Newest] =
    if (!Files.isDirectory(folder)) Seq.empty
    else Using.resource(Files.newDirectoryStream(folder, all))(_.asScala.toSeq).flatMap { file =>
      try Some(Newest.of(new String(Files.readAllBytes(file), US_ASCII)))
      catch { case NonFatal(error) => logWarning(s"$file can't be read: $error"); None }
    }

  def write(newest: Newest): Boolean = try {
    val draft = folder.resolve(s".$name-${UUID.randomUUID()}")
    try {
      Files.write(draft, newest.text.getBytes(US_ASCII))
      Files.move(draft, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE)
      true
    } finally Files.deleteIfExists(draft)
  } catch { case NonFatal(error) => logWarning(s"$name can't be written: $error"); false }
}

/** Reads one partition of a stream. */
class Partition(
    place: TopicPartition, options: () => Map[String, String], notes: () => Option[Notes])
    extends Logging {
  private type Consumer = KafkaConsumer[Array[Byte], Array[Byte]]
  private var known = Seq.empty[Newest]
  private var reached: Option[(String, Newest)] = None // by which run of a query, the last one here
  private var notedAt = 0L

  /** A task begins with a record.
    *
    * @param query the run of a query that the task is of
    */
  def begin(task: Long, query: Option[String], offset: Long): Run = synchronized {
    val now = goneOn(query, offset)
      .orElse(known.filter(_.next == offset).minByOption(_.since))
      .orElse(newest(_.next <= offset).map(readOn(_, offset)))
      .getOrElse(Newest.at(offset))
    keep(now)
    write(now)
    new Run(task, place.partition, now, reachingBack, (end, dropped) => {
      ended(query, end)
      if (dropped > 0) logWarning(s"$place: $dropped records were there before")
    })
  }

  /** What a run of a query knows where its next batch begins. Between two records that it reads, one
    * after the other, there are ends of transactions at most, which have offsets, too: as many
    * batches as a writer exactly once makes, these need not be looked at.
    */
  private def goneOn(query: Option[String], offset: Long): Option[Newest] = reached.collect {
    case (run, newest) if query.contains(run) && newest.next <= offset => newest.copy(next = offset)
  }

  private def ended(query: Option[String], end: Newest): Unit = synchronized {
    keep(end)
    // Two tasks of a batch may read the same records.
    val isBehind = reached.exists { case (run, newest) =>
      query.contains(run) && newest.next > end.next
    }
    if (!isBehind) reached = query.map(_ -> end)
  }

  /** Take in what there is of before, as far as who may have sent since a time may send it again. */
  private def reachingBack(now: Newest, since: Long): Newest = synchronized {
    val begun = newest(it => it.since <= since && it.next <= now.from)
    val earlier = begun.filter(_.next == now.from).getOrElse(reading { consumer =>
      val first = math.min(offsetAt(consumer, since - Partition.ClocksDiffer.toSeconds), now.from)
      readOn(consumer, begun.filter(_.next >= first).getOrElse(Newest.at(first, since)), now.from)
    })
    keep(earlier)
    write(earlier)
    now.behind(earlier)
  }

  /** The offset of the first record since a time, in seconds. */
  private def offsetAt(consumer: Consumer, time: Long): Long =
    if (time <= 0) 0L
    else Option(consumer.offsetsForTimes(JMap.of(place, time * 1000L: java.lang.Long)).get(place))
      .fold(Long.MaxValue)(_.offset)

  /** The newest of those that are known, or noted, and meet a condition. */
  private def newest(condition: Newest => Boolean): Option[Newest] =
    (known ++ notes().toSeq.flatMap(_.read())).filter(condition)
      .maxByOption(it => (it.next, -it.since))

  /** Tasks begin where others have ended, or begun. */
  private def keep(newest: Newest): Unit = synchronized {
    if (!newest.isNothing) known = (newest +: known).take(Partition.Kept)
  }

  private def readOn(from: Newest, until: Long): Newest = reading(readOn(_, from, until))

  /** Read the records up to an offset. Whoever is interrupted goes on there: it may be many. */
  private def readOn(consumer: Consumer, from: Newest, until: Long): Newest = {
    if (from.next < until)
      logInfo(s"$place: records from ${from.next} to $until are looked through for repeats")
    var now = from
    try {
      val first = consumer.beginningOffsets(JList.of(place)).get(place)
      consumer.seek(place, math.max(from.next, first))
      var quietSince = System.nanoTime()
      while (now.next < until) {
        val records = consumer.poll(Partition.Wait).records(place).asScala
        if (records.nonEmpty) quietSince = System.nanoTime()
        else if (System.nanoTime() - quietSince > Partition.Patience.toNanos)
          throw new IllegalStateException(s"$place can't be read from ${now.next}")
        for (record <- records if record.offset < until) {
          val header = record.headers().lastHeader(LooseOutlet.Header)
          now = now.after(record.offset, if (header == null) null else header.value)._1
        }
        now = now.copy(next = math.min(until, consumer.position(place)))
        if (now.next < until) write(now)
      }
      now
    } finally keep(now)
  }

  private def reading[T](read: Consumer => T): T = {
    val consumer = new Consumer(
      (options() ++ Partition.Plain).asInstanceOf[Map[String, Object]].asJava,
      new ByteArrayDeserializer, new ByteArrayDeserializer)
    try {
      consumer.assign(JList.of(place))
      read(consumer)
    } finally consumer.close(Partition.Wait)
  }

  /** Note what is known, from time to time. */
  private def write(newest: Newest): Unit =
    for (file <- notes() if System.nanoTime() - notedAt > Partition.NoteEvery.toNanos)
      if (!newest.isNothing && file.write(newest)) notedAt = System.nanoTime()
}

object Partition {
  private val Kept = 8
  private val Wait = Duration.ofSeconds(1)
  private val Patience = Duration.ofSeconds(60)
  private val NoteEvery = Duration.ofSeconds(10)
  /** Those of the pods of a writer, one after the other, and of brokers. */
  private val ClocksDiffer = Duration.ofMinutes(10)
  private val Plain = Map("enable.auto.commit" -> "false", "isolation.level" -> "read_committed")
}

/** A task's way through a partition; its records come in order. A task that reads them again, for
  * another branch of its plan, has another way.
  *
  * @param reachingBack takes in records of before since a time
  */
class Run(
    task: Long, partition: Int, begun: Newest, reachingBack: (Newest, Long) => Newest,
    ended: (Newest, Int) => Unit) {
  private var now = begun
  private var dropped = 0
  private var isOver = false

  def goesOn(inTask: Long, inPartition: Int, offset: Long): Boolean =
    inTask == task && inPartition == partition && offset >= now.next

  def isNew(offset: Long, origin: Array[Byte]): Boolean = {
    val told = Option(origin).map(Told.of)
    for (it <- told if it.since < now.since) now = reachingBack(now, it.since)
    val (newest, isNew) = now.after(offset, told)
    now = newest
    if (!isNew) dropped += 1
    isNew
  }

  def end(): Unit = if (!isOver) {
    isOver = true
    ended(now, dropped)
  }
}
