package org.apache.spark.sql.streamgraft

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.execution.streaming.state.{StateStoreMetrics, StateStoreProvider}

/** A provider of Spark's with a store of a shard in memory.
  *
  * The next query over the shard in this JVM goes on with it, if it has the very state that the
  * query is to go on from.
  */
class HeldState(folder: String, val provider: StateStoreProvider) {
  private var owner: ShardStateStoreProvider = _
  /** The id of what it has in memory. */
  private var id: String = _
  @volatile var metrics: StateStoreMetrics = StateStoreMetrics(0, 0, Map.empty)
  /** Held while the store is tidied up, which may take long: only who closes it waits for that. */
  private val tidying = new Object
  private var closed = false

  def holds(committed: String, sizes: StateStoreMetrics): Unit = synchronized {
    id = committed
    metrics = sizes
  }

  def maintain(by: ShardStateStoreProvider): Unit = tidying.synchronized {
    if (isOf(by) && !closed) provider.doMaintenance()
  }

  /** Close it, unless a later query has taken it over. */
  def give(by: ShardStateStoreProvider): Unit =
    HeldState.all.computeIfPresent(folder, (_, held) =>
      if ((held eq this) && isOf(by)) {
        close()
        null
      } else held)

  private def isOf(by: ShardStateStoreProvider): Boolean = synchronized(owner eq by)
  private def close(): Unit = tidying.synchronized {
    closed = true
    provider.close()
  }

  /** Whether it has the state that is wanted: then it has a new owner. */
  private def fits(wanted: String, by: ShardStateStoreProvider): Boolean = synchronized {
    if (id == wanted) owner = by
    id == wanted
  }

  private def begin(wanted: String, by: ShardStateStoreProvider): HeldState = {
    id = wanted
    owner = by
    this
  }
}

object HeldState {
  private val all = new ConcurrentHashMap[String, HeldState]

  /** The state of a store, in memory already or not. `folder`: of the store. */
  def take(
      folder: String, id: String, by: ShardStateStoreProvider,
      start: () => StateStoreProvider): HeldState =
    all.compute(folder, (_, held) =>
      if (held != null && held.fits(id, by)) held
      else {
        if (held != null) held.close()
        new HeldState(folder, start()).begin(id, by)
      })

  /** Rows and bytes of the state of a shard, as of when each store was last written in this JVM.
    * `root`: path of its state. */
  def sizes(root: String): Array[Long] = {
    val rows, bytes = new java.util.concurrent.atomic.AtomicLong
    all.forEach { (folder, held) =>
      if (folder.startsWith(root + "/")) {
        rows.addAndGet(held.metrics.numKeys)
        bytes.addAndGet(held.metrics.memoryUsedBytes)
      }
    }
    Array(rows.get, bytes.get)
  }
}
