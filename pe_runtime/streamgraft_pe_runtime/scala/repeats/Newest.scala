package org.apache.spark.sql.kafka010.repeats

import java.nio.charset.StandardCharsets.US_ASCII

/** One partition of one source, read with one checkpoint. */
case class Lane(incarnation: String, scan: Int, topic: String, partition: Int)

/** A row: of so many rows of a source record the last one. Former versions counted those for other
  * topics, too.
  */
case class Row(offset: Long, rows: Int, version: Int) {
  /** Numbers of two versions can't be compared: rather one record's rows twice than one row lost. */
  def isAfter(other: Row): Boolean =
    if (offset != other.offset) offset > other.offset
    else version != other.version || rows > other.rows
}

/** What a record says of its origin.
  *
  * @param since no row that this writer may send again is older than this time, in seconds
  */
case class Told(lane: Lane, row: Row, since: Long) {
  def text: String =
    Seq(s"${row.version}.$since.${lane.incarnation}", lane.scan, lane.topic, lane.partition,
      row.offset, row.rows).mkString("/")
}

object Told {
  /** That of the header: a version more has another number. */
  val Version = 2

  def of(origin: Array[Byte]): Told = of(new String(origin, US_ASCII))

  def of(text: String): Told = {
    val Array(first, scan, topic, partition, offset, rows) = text.split('/')
    val (version, since, incarnation) = first.split('.') match {
      case Array(version, since, incarnation) => (version.toInt, since.toLong, incarnation)
      case _ => (1, 0L, first)
    }
    Told(
      Lane(incarnation, scan.toInt, topic, partition.toInt),
      Row(offset.toLong, rows.toInt, version), since)
  }
}

/** The newest rows of all lanes among the records before an offset.
  *
  * @param next that offset
  * @param from the first offset that was looked at
  * @param since whoever sends again nothing that is older has nothing before `from`
  */
case class Newest(next: Long, from: Long, since: Long, rows: Map[Lane, Row]) {
  def isNothing: Boolean = next == from && since == Long.MaxValue

  /** Take in a record; `origin` is null if it does not say what it is. */
  def after(offset: Long, origin: Array[Byte]): (Newest, Boolean) =
    after(offset, Option(origin).map(Told.of))

  def after(offset: Long, told: Option[Told]): (Newest, Boolean) = {
    val isNew = told.forall(it => rows.get(it.lane).forall(it.row.isAfter))
    val more = if (isNew) rows ++ told.map(it => it.lane -> it.row) else rows
    (copy(next = offset + 1, rows = more), isNew)
  }

  /** Take in what is known of the records before `from`. */
  def behind(earlier: Newest): Newest =
    Newest(next, earlier.from, earlier.since, rows.foldLeft(earlier.rows) { case (all, (lane, row)) =>
      if (all.get(lane).forall(row.isAfter)) all.updated(lane, row) else all
    })

  def text: String = (s"$next $from $since" +: rows.toSeq.map { case (lane, row) =>
    Told(lane, row, 0).text
  }).mkString("\n")
}

object Newest {
  val Empty: Newest = Newest(0, 0, 0, Map.empty)

  /** Nothing was looked at yet. */
  def at(offset: Long): Newest = if (offset == 0) Empty else at(offset, Long.MaxValue)

  def at(offset: Long, since: Long): Newest = Newest(offset, offset, since, Map.empty)

  def of(text: String): Newest = {
    val lines = text.split('\n')
    val rows = lines.tail.foldLeft(Empty)((all, line) => all.after(0, Some(Told.of(line)))._1).rows
    lines.head.split(' ').map(_.toLong) match {
      case Array(next, from, since) => Newest(next, from, since, rows)
      case Array(next) => Empty.copy(next = next, rows = rows) // as former versions wrote it
    }
  }
}
