package org.apache.spark.sql

package object streamgraft {
  /** Keys and values of state. */
  type Row = org.apache.spark.sql.catalyst.expressions.UnsafeRow
}
