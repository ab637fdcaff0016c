package org.apache.spark.sql.streamgraft

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** Keeps the state of partition j where a query of the j-th shard alone would keep it, in versions
  * of the shard's own, with one of Spark's providers.
  *
  * Which of them a batch goes on from is in Spark's own commit log: as the id of the state
  * (checkpointFormatVersion 2) there is `<version>_<run of the query that wrote it>`. The first
  * batch of a checkpoint goes on from what JointShards says. All stores of a shard that has
  * records in a batch write a version then, so they have one number.
  */
class ShardStateStoreProvider extends StateStoreProvider {
  private var outer: StateStoreId = _
  private var joint: JointShards = _
  private var start: () => StateStoreProvider = _
  private var folder: String = _
  @volatile private var held: HeldState = _

  override def init(
      id: StateStoreId, keySchema: StructType, valueSchema: StructType,
      encoder: KeyStateEncoderSpec, useColumnFamilies: Boolean, conf: StateStoreConf,
      hadoop: Configuration, multiple: Boolean, schemas: Option[StateSchemaProvider]): Unit = {
    outer = id
    joint = JointShards.of(id.checkpointRootLocation, hadoop)
    val root = joint.stateOf(id.partitionId)
    val inner = StateStoreId(root, id.operatorId, 0, id.storeName)
    folder = s"${new Path(root).toUri.getPath}/${id.operatorId}/${id.storeName}"
    val alone = withoutIds(conf)
    start = () => {
      val provider = StateStoreProvider.create(joint.provider)
      provider.init(inner, keySchema, valueSchema, encoder, useColumnFamilies, alone,
        ofShard(hadoop), multiple, schemas)
      provider
    }
  }

  /** RocksDB's encoders are cached by run, operator and partition, and have one user at a time; to
    * Spark's provider each shard is partition 0. */
  private def ofShard(hadoop: Configuration): Configuration = {
    val copy = new Configuration(hadoop)
    val run = s"${hadoop.get(StreamExecution.RUN_ID_KEY)} $folder"
    copy.set(StreamExecution.RUN_ID_KEY, UUID.nameUUIDFromBytes(run.getBytes("UTF-8")).toString)
    copy
  }

  /** The shard's own versions have no ids in their files' names, as without us. */
  private def withoutIds(conf: StateStoreConf): StateStoreConf = {
    val copy = new SQLConf
    (SQLConf.get.getAllConfs ++ conf.sqlConfs).foreach { case (name, value) =>
      copy.setConfString(name, value)
    }
    copy.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, 1)
    new StateStoreConf(copy, conf.extraOptions)
  }

  /** The id to go on from. */
  private def from(known: Option[String]): String = known.getOrElse(joint.begun(outer.partitionId))

  private def opened(id: String): StateStoreProvider = {
    held = HeldState.take(folder, id, this, start)
    held.provider
  }

  /** Tell what the inner provider has in memory now. */
  def holds(id: String, metrics: StateStoreMetrics): Unit = {
    val now = held
    if (now != null) now.holds(id, metrics)
  }

  override def stateStoreId: StateStoreId = outer

  override def getStore(
      version: Long, known: Option[String], snapshot: Boolean, loadEmpty: Boolean): StateStore = {
    val id = from(known)
    val store = opened(id).getStore(JointShards.version(id), None, snapshot, loadEmpty)
    new ShardStore(this, store, outer, version, known)
  }

  override def getReadStore(version: Long, known: Option[String]): ReadStateStore = {
    val id = from(known)
    new ShardReadStore(this, opened(id).getReadStore(JointShards.version(id), None), outer, version)
  }

  override def upgradeReadStoreToWriteStore(
      read: ReadStateStore, version: Long, known: Option[String],
      snapshot: Boolean): StateStore = read match {
    // Spark passes on what was read last in this task, which may be of another shard or operator.
    case mine: ShardReadStore if mine.provider eq this =>
      val at = JointShards.version(from(known))
      val store = held.provider.upgradeReadStoreToWriteStore(mine.inner, at, None, snapshot)
      new ShardStore(this, store, outer, version, known)
    case _ => getStore(version, known, snapshot, loadEmpty = false)
  }

  override def close(): Unit = if (held != null) held.give(this)
  override def doMaintenance(): Unit = if (held != null) held.maintain(this)
  // Each of them would be an accumulator of every task; Spark asks for them before init.
  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = Nil
  override def supportedInstanceMetrics: Seq[StateStoreInstanceMetric] = Nil
}

/** What a batch writes to a store of a shard. */
class ShardStore(
    provider: ShardStateStoreProvider, val inner: StateStore, outer: StateStoreId,
    override val version: Long, known: Option[String])
  extends ShardReading with StateStore {
  private var next: Option[String] = None

  override def commit(): Long = {
    // One run commits a version of a shard once; another one, even of the same batch, has its own.
    val run = TaskContext.get().getLocalProperty("spark.jobGroup.id")
    val committed = s"${inner.commit()}_$run"
    next = Some(committed)
    provider.holds(committed, inner.metrics)
    version + 1
  }
  override def abort(): Unit = if (next.isEmpty) inner.abort()
  override def release(): Unit = if (next.isEmpty) inner.release()
  override def hasCommitted: Boolean = next.isDefined
  override def metrics: StateStoreMetrics = {
    val now = inner.metrics
    StateStoreMetrics(now.numKeys, now.memoryUsedBytes, Map.empty)
  }
  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
    StateStoreCheckpointInfo(outer.partitionId, version + 1, next, known)

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = inner.iterator(family)
  override def id: StateStoreId = outer
  override def removeColFamilyIfExists(family: String): Boolean =
    inner.removeColFamilyIfExists(family)
  override def createColFamilyIfAbsent(
      family: String, keySchema: StructType, valueSchema: StructType, encoder: KeyStateEncoderSpec,
      multiple: Boolean, internal: Boolean): Unit =
    inner.createColFamilyIfAbsent(family, keySchema, valueSchema, encoder, multiple, internal)
  override def put(key: Row, value: Row, family: String): Unit = inner.put(key, value, family)
  override def putList(key: Row, values: Array[Row], family: String): Unit =
    inner.putList(key, values, family)
  override def remove(key: Row, family: String): Unit = inner.remove(key, family)
  override def deleteRange(from: Row, to: Row, family: String): Unit =
    inner.deleteRange(from, to, family)
  override def merge(key: Row, value: Row, family: String): Unit = inner.merge(key, value, family)
  override def mergeList(key: Row, values: Array[Row], family: String): Unit =
    inner.mergeList(key, values, family)
}

/** What a batch reads of a store of a shard. */
class ShardReadStore(
    val provider: ShardStateStoreProvider, val inner: ReadStateStore, outer: StateStoreId,
    override val version: Long)
  extends ShardReading {
  override def id: StateStoreId = outer
  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = inner.iterator(family)
  override def abort(): Unit = inner.abort()
  override def release(): Unit = inner.release()
}
