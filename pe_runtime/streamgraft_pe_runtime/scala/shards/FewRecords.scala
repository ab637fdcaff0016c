package org.apache.spark.sql.streamgraft

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.kafka010.KafkaShards

/** Has a batch of few records interpret its projections.
  *
  * Spark writes and looks up the code of each projection in each partition of each batch, which
  * takes longer than to interpret a few hundred rows. It is asked per batch, so those that are
  * behind have compiled ones.
  */
object FewRecords extends Rule[SparkPlan] {
  /** A setting: so many of a partition, at most, are few. */
  val Few = "spark.streamgraft.fewRecords"
  private val Mode = SQLConf.CODEGEN_FACTORY_MODE

  override def apply(plan: SparkPlan): SparkPlan = {
    val scans = plan.collect { case scan: MicroBatchScanExec => scan }
    if (scans.nonEmpty && !isChosen) {
      val most = conf.getConfString(Few, "200").toLong
      val few = scans.forall(scan => KafkaShards.most(scan.start, scan.end).exists(_ <= most))
      conf.setConfString(Mode.key, if (few) "NO_CODEGEN" else "FALLBACK")
    }
    plan
  }

  /** Whether the application says itself which ones it wants. */
  private def isChosen = SparkContext.getActive.exists(_.conf.contains(Mode.key))
}
