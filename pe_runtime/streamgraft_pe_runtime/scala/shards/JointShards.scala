package org.apache.spark.sql.streamgraft

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.JsonMethods

/** What a query's checkpoint (`<stage>/queries/<id>`) says in its shards.json.
  *
  * @param shards whose they are, in the order of the query's partitions
  * @param provider class that keeps their state
  * @param state by shard: the id of the state that the first batch goes on from; none is empty
  */
case class Described(
    shards: List[Int], provider: Option[String], state: Option[Map[String, String]])

class JointShards(stage: Path, described: Described) {
  def provider: String =
    described.provider.getOrElse(throw new IllegalStateException("shards without a state provider"))

  /** Where the state of a partition's shard is: as of a query that runs it alone. */
  def stateOf(partition: Int): String =
    new Path(stage, s"${described.shards(partition)}/state").toString

  def begun(partition: Int): String =
    described.state.getOrElse(Map.empty).getOrElse(described.shards(partition).toString, "0")
}

object JointShards {
  private implicit val formats: Formats = DefaultFormats
  private val known = new ConcurrentHashMap[String, JointShards]

  /** Of a query, by the folder that it takes for that of its state. */
  def of(state: String, hadoop: Configuration): JointShards = known.computeIfAbsent(state, _ => {
    val checkpoint = new Path(state).getParent
    val file = new Path(checkpoint, "shards.json")
    val stream = file.getFileSystem(hadoop).open(file)
    try {
      val described = JsonMethods.parse(stream).extract[Described]
      new JointShards(checkpoint.getParent.getParent, described)
    } finally stream.close()
  })

  /** The shard's own version, of an id. */
  def version(id: String): Long = id.takeWhile(_ != '_').toLong
}
