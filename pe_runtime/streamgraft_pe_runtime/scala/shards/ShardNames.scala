package org.apache.spark.sql.streamgraft

import java.nio.file.{Files, Paths}
import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

/** Under which names this JVM has shards (shard_names.py). They are not settings of a query, as state
  * that is held in memory goes from one query to the next.
  */
object ShardNames {
  private val names = new ConcurrentHashMap[String, String]
  private val queries = new ConcurrentHashMap[String, Map[String, String]]

  /** @param checkpoint that of the query that is to run the shard
    * @param shard path of its folder
    * @param name path of the file in it that is there for as long as the shard is ours */
  def hold(checkpoint: String, shard: String, name: String): Unit = {
    names.put(shard, name)
    queries.merge(checkpoint, Map(shard -> name),
      (before: Map[String, String], now: Map[String, String]) => before ++ now)
  }

  /** The names of all shards of a query, if this JVM has taken them. */
  def ofQuery(checkpoint: Path): Seq[String] =
    queries.getOrDefault(checkpoint.toUri.getPath, Map.empty).values.toSeq

  /** Whether the shard is another owner's by now. */
  def isLost(name: String): Boolean = Files.notExists(Paths.get(name))

  /** The name of the shard that a file is of, if this JVM has taken one. */
  def of(file: Path): Option[String] =
    Iterator.iterate(file.getParent)(_.getParent).takeWhile(_ != null)
      .map(folder => names.get(folder.toUri.getPath)).find(_ != null)
}
