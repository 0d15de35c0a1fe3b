"""Rows of offset ranges, by the classes of Spark's Kafka connector.

Its data source takes one range per partition, plans with a client of its own for each read, and
converts each record twice. These classes are not public: the connector's version is pinned.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from mm2slo_audit.ingestion.scan_plan import Range

_POLL_TIMEOUT_MS: Final = 120_000
_ROW: Final = "org.apache.spark.sql.catalyst.InternalRow"
_CLASSES: Final = (
    "org.apache.spark.sql.kafka010.KafkaSourceRDD",
    "org.apache.kafka.common.TopicPartition",
)
"""One of each jar. Py4J takes a class that is missing for a package."""


def range_rows(
    spark: SparkSession, kafka: Mapping[str, str], ranges: Iterable[Range], *, headers: bool
) -> DataFrame:
    """The records of *ranges*, each read by a task, with the columns of the connector.

    *kafka*: settings of Java's consumer. Offsets that retention has deleted raise an error. Tasks
    share consumers, and their pool does not distinguish clusters, so each read has its own group.
    """
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _CLASSES:
        loader.loadClass(name)
    connector = jvm.org.apache.spark.sql.kafka010
    convert = jvm.scala.jdk.javaapi.CollectionConverters
    place, nowhere = jvm.org.apache.kafka.common.TopicPartition, jvm.scala.Option.empty()
    offsets = jvm.java.util.ArrayList()
    for each in ranges:
        offsets.add(
            connector.KafkaOffsetRange(
                place(each.topic, each.partition), each.start, each.end, nowhere
            )
        )
    settings = jvm.java.util.HashMap()
    for name, value in kafka.items():
        settings.put(name, value)
    consumers = _companion(connector, "KafkaSourceProvider").kafkaParamsForExecutors(
        jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(settings),
        f"spark-kafka-relation-{uuid.uuid4()}",
    )
    read = connector.KafkaSourceRDD(
        spark.sparkContext._jsc.sc(),
        consumers,
        convert.asScala(offsets).toList(),
        _POLL_TIMEOUT_MS,
        True,
    )
    converter = connector.KafkaRecordToRowConverter()
    of_record = (
        converter.toInternalRowWithHeaders if headers else converter.toInternalRowWithoutHeaders
    )
    rows = read.map(
        of_record(), jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName(_ROW))
    )
    schema = _companion(connector, "KafkaRecordToRowConverter").kafkaSchema(headers)
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rows, schema, False), spark)


def _companion(package: Any, name: str) -> Any:
    """Scala's companion object of a class."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
