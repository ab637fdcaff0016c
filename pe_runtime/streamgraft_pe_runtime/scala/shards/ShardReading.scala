package org.apache.spark.sql.streamgraft

import org.apache.spark.sql.execution.streaming.state.{ReadStateStore, StateStoreIterator, UnsafeRowPair}

/** Reads what another store has. */
trait ShardReading extends ReadStateStore {
  def inner: ReadStateStore

  override def get(key: Row, family: String): Row = inner.get(key, family)
  override def multiGet(keys: Array[Row], family: String): Iterator[Row] =
    inner.multiGet(keys, family)
  override def keyExists(key: Row, family: String): Boolean = inner.keyExists(key, family)
  override def valuesIterator(key: Row, family: String): Iterator[Row] =
    inner.valuesIterator(key, family)
  override def prefixScan(key: Row, family: String): StateStoreIterator[UnsafeRowPair] =
    inner.prefixScan(key, family)
  override def prefixScanWithMultiValues(
      key: Row, family: String): StateStoreIterator[UnsafeRowPair] =
    inner.prefixScanWithMultiValues(key, family)
  override def rangeScan(
      from: Option[Row], to: Option[Row], family: String): StateStoreIterator[UnsafeRowPair] =
    inner.rangeScan(from, to, family)
  override def rangeScanWithMultiValues(
      from: Option[Row], to: Option[Row], family: String): StateStoreIterator[UnsafeRowPair] =
    inner.rangeScanWithMultiValues(from, to, family)
  override def iteratorWithMultiValues(family: String): StateStoreIterator[UnsafeRowPair] =
    inner.iteratorWithMultiValues(family)
  override def allColumnFamilyNames: Set[String] = inner.allColumnFamilyNames
}
