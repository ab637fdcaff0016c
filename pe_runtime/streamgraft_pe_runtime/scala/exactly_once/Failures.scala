package org.apache.spark.sql.kafka010.exactlyonce

import org.apache.hadoop.fs.Path
import org.apache.kafka.common.errors._

/** Says why a target can't be written, and what to do. */
class Failures(target: Target, identity: Identity) {
  private val id = identity.transactionalId
  private val timeoutMillis =
    Option(target.producer.get("transaction.timeout.ms")).fold(60000L)(_.toString.toLong)
  @volatile private var began = 0L

  def transactionBegan(): Unit = began = System.nanoTime
  def transactionEnded(): Unit = began = 0L

  def explained[T](body: => T): T = try body catch {
    case error: NotExactlyOnce => throw error
    case error: Exception =>
      throw Failures.causes(error).flatMap(reason).nextOption()
        .fold[Throwable](error)(new NotExactlyOnce(_, error))
  }

  def otherBatch(entry: Entry, batch: Long) = new NotExactlyOnce(
    s"$id: batch ${entry.batch} is written, and this is batch $batch, or that batch with other" +
      " records: the checkpoint was put back to an earlier one, or lost a file. Put the newest back")

  def otherQuery(marker: Path) = new NotExactlyOnce(
    s"$id: another query has written under this transactional id. End it; if it was an earlier" +
      s" form of this one, delete $marker to go on with this checkpoint")

  def ledgerLost(ledger: Ledger, marker: Path) = new NotExactlyOnce(
    s"$id: the ledger ($ledger) is gone: deleted, or expired. Whether the last batch is written" +
      s" can't be known. To have it written, perhaps again, delete $marker")

  def otherMode = new NotExactlyOnce(
    s"$id: the last run was cut off within a batch, in another mode than this run's: set real-time" +
      " mode as it was, let the query run until it can be stopped, and then change it")

  def otherOwner = new NotExactlyOnce(s"$id: another owner writes under this transactional id")

  private def reason(error: Throwable): Option[String] = Option(error).collect {
    case _: TransactionalIdAuthorizationException =>
      s"not allowed to use transactional id $id: the user needs Write and Describe on it"
    case _: GroupAuthorizationException =>
      s"not allowed to use consumer group ${identity.ledgerGroup}: the user needs Read on it"
    case denied: TopicAuthorizationException =>
      s"not allowed to use ${denied.unauthorizedTopics}: the user needs Write and Describe on topics" +
        s" that are written, and Read on ${identity.ledger.topic}"
    // The client knows no name for this one.
    case denied if String.valueOf(denied.getMessage).contains("TxnOffsetCommitResponse: Topic auth") =>
      s"not allowed to commit the ledger: the user needs Read on ${identity.ledger.topic}"
    case _: UnsupportedVersionException =>
      s"the brokers at ${target.brokers} are too old for exactly once: they need Kafka 2.5 or newer"
    case large: RecordTooLargeException =>
      s"a record is too large for its topic (${large.getMessage}): raise max.message.bytes of the" +
        " topic, and kafka.max.request.size in the sink's options beyond 16 MiB, or write less in one"
    // The client knows no name for this one, either.
    case large if String.valueOf(large.getMessage).contains(Failures.LargeLedger) =>
      s"the ledger's entry is too large for the brokers at ${target.brokers}: in real-time mode it" +
        " grows with the partitions of the sources. Raise offset.metadata.max.bytes of the brokers," +
        " read fewer partitions in one PE, or use delivery at_least_once or no real-time mode"
    case _: ProducerFencedException | _: InvalidProducerEpochException => fenced
    case timeout: TimeoutException if String.valueOf(timeout.getMessage).contains("InitProducerId") =>
      s"the brokers at ${target.brokers} grant no transactions: can they keep the topic" +
        " __transaction_state (transaction.state.log.replication.factor)? The sink's delivery" +
        " at_least_once needs none"
  }

  /** The brokers answer the same when they have aborted a transaction that was open for too long. */
  private def fenced: String = {
    val open = if (began == 0L) 0L else (System.nanoTime - began) / 1000000
    if (open > timeoutMillis)
      s"$id: the batch's transaction was open for ${open / 1000} s, longer than" +
        s" transaction.timeout.ms ($timeoutMillis): raise kafka.transaction.timeout.ms in the sink's" +
        " options, or let a batch take fewer records (maxOffsetsPerTrigger)"
    else otherOwner.getMessage
  }
}

object Failures {
  def causes(error: Throwable): Iterator[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20)

  private val LargeLedger = org.apache.kafka.common.protocol.Errors.OFFSET_METADATA_TOO_LARGE.message
}
