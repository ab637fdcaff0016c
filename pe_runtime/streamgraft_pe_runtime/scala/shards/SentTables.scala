package org.apache.spark.sql.streamgraft

import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, HintInfo, Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/** Sends the table of a join to the rows of the stream, whatever size either has by now.
  *
  * Spark chooses anew for each batch: it would shuffle for a table that has grown, and send a stream
  * without new records to a table. AlignShards refuses both, and the batch is in the log then. What
  * the application asks for is left as it is.
  */
object SentTables extends SparkStrategy {
  /** A setting of a query: whether its tables are to be sent. */
  val Wanted = "spark.streamgraft.sendTables"
  private val Sent = Some(HintInfo(strategy = Some(BROADCAST)))

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case join: Join if isOpen(join) && SQLConf.get.getConfString(Wanted, "false").toBoolean =>
      val hint = if (join.left.isStreaming) JoinHint(None, Sent) else JoinHint(Sent, None)
      Seq(planLater(join.copy(hint = hint)))
    case _ => Nil
  }

  private def isOpen(join: Join): Boolean =
    join.left.isStreaming != join.right.isStreaming &&
      !Seq(join.hint.leftHint, join.hint.rightHint).flatten.exists(_.strategy.isDefined)
}
