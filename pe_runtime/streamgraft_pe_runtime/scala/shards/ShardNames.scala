package org.apache.spark.sql.streamgraft

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

/** Under which names this JVM has shards (shard_names.py). They are not settings of a query, as state
  * that is held in memory goes from one query to the next.
  */
object ShardNames {
  private val names = new ConcurrentHashMap[String, String]

  /** @param shard path of its folder
    * @param name path of the file in it that is there for as long as the shard is ours */
  def hold(shard: String, name: String): Unit = names.put(shard, name)

  /** The name of the shard that a file is of, if this JVM has taken one. */
  def of(file: Path): Option[String] =
    Iterator.iterate(file.getParent)(_.getParent).takeWhile(_ != null)
      .map(folder => names.get(folder.toUri.getPath)).find(_ != null)
}
