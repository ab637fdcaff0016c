package org.apache.spark.sql.kafka010

import scala.collection.mutable.ArrayBuffer

import org.apache.kafka.clients.producer.ProducerRecord

package object exactlyonce {
  type Record = ProducerRecord[Array[Byte], Array[Byte]]
  type Records = ArrayBuffer[Record]
}

package exactlyonce {
  /** What keeps a query from writing each batch exactly once; the message says what to do. */
  class NotExactlyOnce(message: String, cause: Throwable = null)
      extends RuntimeException(message, cause)
}
