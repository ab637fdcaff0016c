/** A Kafka sink for streaming queries that writes each batch exactly once, whatever dies.
  *
  * docs/use/exactly-once.md says how. Driver and tasks share one JVM (`local[…]`), and in it the
  * producers: how the rows of a batch are spread over tasks and topics does not matter.
  */
package org.apache.spark.sql.kafka010.exactlyonce

import java.util.{Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SessionConfigSupport, SupportsWrite, Table, TableCapability}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.{SimpleTableProvider, SupportsStreamingUpdateAsAppend}
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** format("exactly-once-kafka"); [[Settings]] has the options. Spark's settings
  * `spark.datasource.exactly-once-kafka.<option>` are their defaults.
  */
class ExactlyOnceKafka
    extends SimpleTableProvider with DataSourceRegister with SessionConfigSupport {
  override def shortName(): String = "exactly-once-kafka"
  override def keyPrefix(): String = shortName()
  override def getTable(options: CaseInsensitiveStringMap): Table =
    new ExactlyOnceTable(Owners.open(Settings(options)))
}

/** The sink of one run of a query, which Spark makes when the query starts. */
class ExactlyOnceTable(owner: Owner) extends Table with SupportsWrite {
  override def name(): String = owner.key
  override def schema(): StructType = new StructType
  override def capabilities(): JSet[TableCapability] =
    Set(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA).asJava
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsTruncate with SupportsStreamingUpdateAsAppend {
      override def truncate(): WriteBuilder = this
      override def build(): Write = new Write {
        override def toStreaming(): StreamingWrite = new ExactlyOnceWrite(owner, info.schema())
      }
    }
}

/** The driver's side of a batch. */
class ExactlyOnceWrite(owner: Owner, schema: StructType) extends StreamingWrite {
  override def useCommitCoordinator(): Boolean = false
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    owner.begin()
    RecordWriterFactory(owner.key, schema)
  }
  override def commit(batch: Long, messages: Array[WriterCommitMessage]): Unit = owner.commit(batch)
  override def abort(batch: Long, messages: Array[WriterCommitMessage]): Unit =
    owner.close(ended = None)
}

/** Goes to the tasks, which find the owner by its key. */
case class RecordWriterFactory(owner: String, schema: StructType) extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, batch: Long): DataWriter[InternalRow] = {
    val task = TaskContext.get()
    // A stage whose input is lost begins again, with tasks that have not failed.
    if (task.attemptNumber() > 0 || task.stageAttemptNumber() > 0)
      throw new NotExactlyOnce("a task of the batch ran twice: leave spark.task.maxFailures at 1")
    val found = Owners(owner)
    found.realTime.map(new RealTimeWriter(found, _, schema))
      .orElse(found.loose.map(new LooseWriter(found, _, schema)))
      .getOrElse(new RecordWriter(found, schema, batch))
  }
}
