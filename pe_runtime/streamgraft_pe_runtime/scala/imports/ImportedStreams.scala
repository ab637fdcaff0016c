/** Streams of other jobs as one source: topics that come and go while the query runs. */
package org.apache.spark.sql.kafka010.imports

import java.util.{List => JList, Set => JSet, UUID}
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, ExecutionException}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Try}

import org.apache.kafka.clients.admin.{Admin, DescribeTopicsOptions, TopicDescription}
import org.apache.kafka.common.{KafkaFuture, TopicPartition}
import org.apache.kafka.common.acl.AclOperation
import org.apache.kafka.common.errors.{
  InvalidTopicException, TopicAuthorizationException, UnknownTopicOrPartitionException}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{InputPartition, Scan, ScanBuilder}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, ReadLimit}
import org.apache.spark.sql.internal.connector.SimpleTableProvider
import org.apache.spark.sql.kafka010._
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Which topics each import of this driver reads now, by the name of its operator. */
object Matches {
  private val topics = new ConcurrentHashMap[String, Set[String]]()
  def set(operator: String, names: JList[String]): Unit = topics.put(operator, names.asScala.toSet)
  def of(operator: String): Set[String] = topics.getOrDefault(operator, Set.empty)
}

/** Where batches went past records that were deleted: by retention, or with their topic. */
object Passed {
  private val gaps = new ConcurrentLinkedQueue[Array[String]]()
  def note(at: TopicPartition, position: Long, start: Long): Unit =
    gaps.add(Array(at.topic, at.partition.toString, position.toString, start.toString))

  /** Those since the last call: topic, partition, first of these records, first that was left. */
  def take(): Array[Array[String]] = Iterator.continually(gaps.poll()).takeWhile(_ != null).toArray
}

/** format("imported-streams"), with `operator` and the options of Spark's Kafka source. */
class ImportedStreams extends SimpleTableProvider with DataSourceRegister {
  override def shortName(): String = "imported-streams"
  override def getTable(options: CaseInsensitiveStringMap): Table = new Table with SupportsRead {
    override def name(): String = s"import ${options.get("operator")}"
    override def schema(): StructType = KafkaRecordToRowConverter.kafkaSchema(false)
    override def capabilities(): JSet[TableCapability] =
      Set(TableCapability.MICRO_BATCH_READ).asJava
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
      () => new ImportScan(options)
  }
}

class ImportScan(options: CaseInsensitiveStringMap) extends Scan {
  override def readSchema(): StructType = KafkaRecordToRowConverter.kafkaSchema(false)
  override def toMicroBatchStream(checkpoint: String): MicroBatchStream = {
    val all = options.asCaseSensitiveMap().asScala.toMap
    val kafka = all.collect {
      case (name, value) if name.toLowerCase.startsWith("kafka.") => name.drop(6) -> value
    }
    val group = s"streamgraft-import-${UUID.randomUUID}"
    val topics = new MatchedTopics(options.get("operator"))
    val driver = KafkaSourceProvider.kafkaParamsForDriver(kafka)
    val reader = KafkaOffsetReader.build(topics, driver, CaseInsensitiveMap(all), s"$group-driver")
    val executors = KafkaSourceProvider.kafkaParamsForExecutors(kafka, group)
    new ImportStream(topics, reader, executors, options, checkpoint)
  }
}

/** The partitions of the topics that are matched now, and exist. */
class MatchedTopics(operator: String) extends AssignStrategy(Array.empty) with Logging {
  @volatile var there: Set[String] = Set.empty
  private var refused = Map.empty[String, String]

  override def assignedTopicPartitions(admin: Admin): Set[TopicPartition] = {
    val (found, failed) = MatchedTopics.partitions(admin, Matches.of(operator))
    // One export that we may not read keeps nobody from the others.
    val (ours, theirs) = failed.partition { case (_, why) =>
      why.isInstanceOf[TopicAuthorizationException] || why.isInstanceOf[InvalidTopicException]
    }
    theirs.values.headOption.foreach(why => throw why)
    val now = ours.map { case (topic, why) => topic -> why.getMessage }
    for ((topic, why) <- now -- refused.keySet)
      logWarning(s"$operator does not read '$topic': $why")
    refused = now
    there = found.map(_.topic)
    found
  }

  /** Which of these topics there are. One that is to be read and is not found makes the query fail,
    * and be tried again: a broker that has just come may not know it yet. An export is unmatched
    * before its topic goes.
    */
  def existing(wanted: Set[String], reader: KafkaOffsetReader): Set[String] = {
    val unsure = wanted -- there
    if (unsure.isEmpty) wanted
    else {
      val admin = Admin.create(reader.driverKafkaParams)
      try {
        val (found, failed) = MatchedTopics.partitions(admin, unsure)
        failed.values.headOption.foreach(why => throw why)
        val known = (wanted & there) ++ found.map(_.topic)
        for (topic <- wanted -- known if Matches.of(operator)(topic))
          throw new UnknownTopicOrPartitionException(
            s"$operator is to read $topic, which is not found")
        known
      } finally admin.close()
    }
  }
  override def toString: String = s"Matches[$operator]"
}

object MatchedTopics {
  /** The partitions of the topics that are there, and of others why they can't be known. */
  def partitions(
      admin: Admin, topics: Set[String]): (Set[TopicPartition], Map[String, Throwable]) =
    if (topics.isEmpty) (Set.empty, Map.empty)
    else {
      // Who may write to a topic may describe it, and so learns nothing of whether it may be read.
      val asked = new DescribeTopicsOptions().includeAuthorizedOperations(true)
      val described = admin.describeTopics(topics.asJava, asked).topicNameValues().asScala.toMap
      val found = described.map { case (topic, future) => topic -> partitionsOf(topic, future) }
      (found.values.flatMap(_.getOrElse(Nil)).toSet,
        found.collect { case (topic, Failure(why)) => topic -> why })
    }

  private def partitionsOf(
      topic: String, described: KafkaFuture[TopicDescription]): Try[Seq[TopicPartition]] =
    Try(readable(described.get()).partitions().asScala.toSeq)
      .map(_.map(each => new TopicPartition(topic, each.partition)))
      .recoverWith { case e: ExecutionException => Failure(e.getCause) }
      // An export that is gone, or just comes.
      .recover { case _: UnknownTopicOrPartitionException => Nil }

  /** Some brokers don't tell what is allowed. */
  private def readable(topic: TopicDescription): TopicDescription =
    if (Option(topic.authorizedOperations).forall(_.contains(AclOperation.READ))) topic
    else throw new TopicAuthorizationException(
      s"not allowed to read ${topic.name}: the user needs Read on it", JSet.of(topic.name))
}

/** Keeps the positions of topics that are not matched in its offsets: when they are matched again,
  * it goes on there. A topic that is new first gets a position, in a batch without records of it,
  * and is read from there on. So each record is in one batch, whatever comes, goes, or is killed.
  */
class ImportStream(
    topics: MatchedTopics,
    reader: KafkaOffsetReader,
    executors: java.util.Map[String, Object],
    options: CaseInsensitiveStringMap,
    checkpoint: String)
    extends KafkaMicroBatchStream(
      reader, executors, options, checkpoint, EarliestOffsetRangeLimit, failOnDataLoss = false) {
  private type Positions = Map[TopicPartition, Long]
  private val fromLatest = options.get("startingOffsets") == "latest"

  override def initialOffset(): Offset = KafkaSourceOffset(Map.empty[TopicPartition, Long])

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val from = positions(start)
    val latest = Option(super.latestOffset(start, limit)).fold[Positions](Map.empty)(positions)
    val (known, fresh) = latest.partition { case (partition, _) => from.contains(partition) }
    // What a topic gets more of came since it was first read.
    val (more, first) = fresh.partition { case (at, _) => from.keys.exists(_.topic == at.topic) }
    val begun = earliest(more) ++ (if (fromLatest) newest(from, first) else earliest(first))
    // Retention may have taken what was to come.
    val found = from ++ known.map { case (at, end) => at -> math.max(end, from(at)) } ++ begun
    if (found.isEmpty) null else KafkaSourceOffset(found)
  }

  private def earliest(partitions: Positions): Positions =
    if (partitions.isEmpty) partitions
    else reader.fetchEarliestOffsets(partitions.keys.toSeq)

  private def newest(from: Positions, partitions: Positions): Positions =
    if (partitions.isEmpty) partitions
    else reader.fetchLatestOffsets(Some(from)).filter(at => partitions.contains(at._1))

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    val (from, until) = (positions(start), positions(end))
    val busy = until.filter { case (at, last) => from.get(at).exists(_ < last) }
    val exist = topics.existing(busy.keySet.map(_.topic), reader)
    val (read, gone) = busy.partition { case (at, _) => exist(at.topic) }
    for ((at, end) <- gone) Passed.note(at, from(at), end)
    for ((at, start) <- earliest(read) if start > from(at)) Passed.note(at, from(at), start)
    super.planInputPartitions(
      KafkaSourceOffset(from.filter(each => read.contains(each._1))), KafkaSourceOffset(read))
  }

  private def positions(offset: Offset): Positions =
    offset.asInstanceOf[KafkaSourceOffset].partitionToOffsets
}
