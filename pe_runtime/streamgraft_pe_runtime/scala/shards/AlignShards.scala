package org.apache.spark.sql.streamgraft

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.{MicroBatchScanExec, V2TableWriteExec}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange, ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec}
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelationExec
import org.apache.spark.sql.kafka010.KafkaShards

/** The way in: spark.sql.extensions names this class. */
class ShardExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectPlannerStrategy(_ => SentTables)
    // Behind EnsureRequirements, which adds exchanges, and before code is generated.
    Seq(AlignShards, FewRecords).foreach { rule =>
      extensions.injectColumnar(_ => new ColumnarRule {
        override def postColumnarTransitions: Rule[SparkPlan] = rule
      })
    }
  }
}

/** Why the batches of a query can't keep its shards apart; nothing of it has run. */
class NotAlignedException(reason: String)
  extends UnsupportedOperationException(s"${AlignShards.Refused}: $reason")

/** Keeps the shards of a query apart: partition j of a batch, from the source to the sink, is the
  * j-th of the query's shards, whether it has records or not.
  *
  * spark_partition_id() in the plan is j then, and no row is shuffled. A plan of which that can't be
  * said for sure is refused. So is one with a watermark, which would be the query's and not the
  * shard's, or with state that does something in batches without records.
  */
object AlignShards extends Rule[SparkPlan] {
  val Refused = "STREAMGRAFT_NOT_ALIGNED"
  /** Settings of a query: whether its shards are to be kept apart, and in how many tasks they run. */
  val Wanted = "spark.streamgraft.alignShards"
  val Slots = "spark.streamgraft.slots"
  private val Provider = classOf[ShardStateStoreProvider].getName

  override def apply(plan: SparkPlan): SparkPlan = {
    val wanted = conf.getConfString(Wanted, "false").toBoolean
    if (!wanted || !plan.exists(isSource)) return plan
    val aligned = align(plan, shards(plan))
    refusal(aligned).foreach(reason => throw new NotAlignedException(reason))
    val slots = conf.getConfString(Slots, "1").toInt
    aligned match {
      case write: V2TableWriteExec =>
        write.withNewChildren(Seq(ShardTasksExec(slots, write.query)))
      case other => ShardTasksExec(slots, other)
    }
  }

  /** How many the query has; 0 in a plan that is only explained. */
  private def shards(plan: SparkPlan): Int = plan.collectFirst {
    case scan: MicroBatchScanExec if isSource(scan) => KafkaShards.owned(scan.end).size
  }.getOrElse(0)

  private def align(plan: SparkPlan, shards: Int): SparkPlan = plan match {
    case _: BroadcastExchangeLike => plan // of a table, or refused
    case _ => plan.mapChildren(align(_, shards)) match {
      case source if isSource(source) => ShardAlignExec(source)
      // What Spark reads in the place of an input that has nothing new.
      case nothing: LocalTableScanExec if nothing.rows.isEmpty => ShardEmptyExec(shards, nothing)
      // With one partition per shard these only bring rows to where they are.
      case shuffle: ShuffleExchangeLike if isAligned(shuffle) => shuffle.child
      case coalesce: CoalesceExec if isAligned(coalesce) => coalesce.child
      case union: UnionExec if union.children.forall(isAligned) => ShardUnionExec(union.children)
      case other => other
    }
  }

  private def isSource(plan: SparkPlan) = plan match {
    case scan: MicroBatchScanExec => KafkaShards.isKafka(scan.end)
    case planned: StreamingRelationExec => planned.sourceName == "kafka" // in a plan that is explained
    case _ => false
  }

  private def isAligned(plan: SparkPlan) = plan.exists {
    case _: ShardAlignExec | _: ShardEmptyExec => true
    case _ => false
  }

  /** Why partition j of the result may not be the j-th shard's alone; None if it surely is. */
  private def refusal(plan: SparkPlan): Option[String] = plan.collectFirst {
    case timed: EventTimeWatermarkExec => "it has a watermark"
    case state: StatefulOperator if !isAtRest(state) => s"it keeps state (${state.nodeName})"
    case state: StateStoreWriter if conf.stateStoreProviderClass != Provider =>
      s"it keeps state that its build did not see (${state.nodeName})"
    case exchange: Exchange if isAligned(exchange) || exchange.exists(isSource) =>
      s"it has ${exchange.nodeName}"
    case scan: MicroBatchScanExec if !isSource(scan) => "it reads a stream that is not in Kafka"
    case node if isAligned(node) && node.children.size > 1 && !isUnderstood(node) =>
      s"it has ${node.nodeName}, which may mix the rows of several partitions"
  }

  /** Whether state is one store, in which nothing happens without records. A batch may have several
    * such operators: each writes a version for every shard that has records. */
  private def isAtRest(operator: StatefulOperator) = operator match {
    case _: StateStoreRestoreExec | _: StateStoreSaveExec | _: StreamingDeduplicateExec => true
    case _ => false
  }

  private def isUnderstood(node: SparkPlan) = node match {
    case _: ShardUnionExec => true
    case join: BroadcastHashJoinExec => isBroadcast(join.left) || isBroadcast(join.right)
    case join: BroadcastNestedLoopJoinExec => isBroadcast(join.left) || isBroadcast(join.right)
    case _ => false
  }

  private def isBroadcast(plan: SparkPlan): Boolean = plan match {
    case _: BroadcastExchangeLike => true
    case adapter: InputAdapter => isBroadcast(adapter.child)
    case reused: ReusedExchangeExec => isBroadcast(reused.child)
    case _ => false
  }
}
