package org.apache.spark.sql.streamgraft

import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode, UnionExec}
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOpStateStoreCheckpointInfo, StateStoreWriter}
import org.apache.spark.sql.kafka010.KafkaShards

/** The rows of a source, one partition per shard, also for shards of which a batch has no rows. */
case class ShardAlignExec(child: SparkPlan) extends UnaryExecNode {
  private def scan = child.asInstanceOf[MicroBatchScanExec]

  /** Per shard: the indices of its ranges among those of the scan. */
  @transient private lazy val parents: Seq[Seq[Int]] = {
    val ranges = scan.inputPartitions.map(KafkaShards.of)
    KafkaShards.owned(scan.end).map(shard => ranges.indices.filter(ranges(_) == shard))
  }

  /** The partitions of shards of which the batch has records. */
  def filled: Seq[Int] = parents.indices.filter(parents(_).nonEmpty)

  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = UnknownPartitioning(0)
  override protected def doExecute(): RDD[InternalRow] =
    child.execute().coalesce(parents.size, shuffle = false, Some(new ShardCoalescer(parents)))
  override protected def withNewChildInternal(newChild: SparkPlan): ShardAlignExec =
    copy(child = newChild)
}

/** No rows, in one partition per shard; Spark gives none at all to a source that has none. */
case class ShardEmptyExec(shards: Int, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def doExecute(): RDD[InternalRow] =
    sparkContext.parallelize(Seq.empty[InternalRow], shards)
  override protected def withNewChildInternal(newChild: SparkPlan): ShardEmptyExec =
    copy(child = newChild)
}

/** At most one task per slot, each for several shards one behind the other; none for idle ones.
  *
  * The state of a shard that is left out keeps its id.
  */
case class ShardTasksExec(slots: Int, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = UnknownPartitioning(slots)
  override protected def doExecute(): RDD[InternalRow] = {
    val shards = child.execute()
    val busy = child.collect { case scan: ShardAlignExec => scan.filled }.flatten.distinct.sorted
    val idle = (0 until shards.getNumPartitions).filterNot(busy.toSet)
    child.foreach {
      case writer: StateStoreWriter => idle.foreach(keep(writer, _))
      case _ =>
    }
    val tasks = math.max(1, math.min(slots, busy.size))
    val groups = (0 until tasks).map(task => busy.indices.filter(_ % tasks == task).map(busy))
    shards.coalesce(tasks, shuffle = false, Some(new ShardCoalescer(groups)))
  }

  private def keep(writer: StateStoreWriter, partition: Int): Unit = {
    val info = writer.getStateInfo
    val known = info.getStateStoreCkptId(partition)
    val hadoop = session.sessionState.newHadoopConf()
    val ids = known.getOrElse(Array(JointShards.of(info.checkpointLocation, hadoop).begun(partition)))
    writer.checkpointInfoAccumulator.add(
      StatefulOpStateStoreCheckpointInfo(partition, info.storeVersion + 1, Some(ids), known))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ShardTasksExec =
    copy(child = newChild)
}

/** UnionExec appends partitions; this joins those of each shard. */
case class ShardUnionExec(children: Seq[SparkPlan]) extends SparkPlan {
  // A column may be null if it may be so in any of them.
  override lazy val output: Seq[Attribute] = UnionExec(children).output
  override def outputPartitioning: Partitioning =
    UnknownPartitioning(children.head.outputPartitioning.numPartitions)
  override protected def doExecute(): RDD[InternalRow] =
    children.map(_.execute()).reduce((one, two) => one.zipPartitions(two)(_ ++ _))
  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): ShardUnionExec = copy(children = newChildren)
}

/** Makes a partition of each group of partitions. */
class ShardCoalescer(groups: Seq[Seq[Int]]) extends PartitionCoalescer with Serializable {
  override def coalesce(maxPartitions: Int, parent: RDD[_]): Array[PartitionGroup] =
    groups.map { indices =>
      val group = new PartitionGroup()
      group.partitions ++= indices.map(parent.partitions(_))
      group
    }.toArray
}
