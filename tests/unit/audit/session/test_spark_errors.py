import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from mm2slo_audit.spark.spark_errors import describe_spark_error

WRITE_FAILED = """An error occurred while calling o71.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/out.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$
Caused by: java.io.IOException: No space left on device
"""
OTHER_JARS = """An error occurred while calling o60.load.
: java.lang.NoClassDefFoundError: org/apache/kafka/common/serialization/ByteArraySerializer
"""
NO_CONNECTOR = """An error occurred while calling o80.loadClass.
: java.lang.ClassNotFoundException: org.apache.spark.sql.kafka010.KafkaSourceRDD
"""
NO_CLIENT = """An error occurred while calling o80.loadClass.
: java.lang.ClassNotFoundException: org.apache.kafka.common.TopicPartition
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's JVM ended: check its memory"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's JVM ended"),
        (ValueError("\n\tat Main\n no reason \n\tat more"), "no reason"),
        (ValueError(WRITE_FAILED), "no space left on the disk of audit.directory or of Spark's"),
        (
            ValueError(OTHER_JARS),
            "Spark's jars do not fit each other: expected Spark 4.0.x or",
        ),
        (ValueError(NO_CONNECTOR), "Spark has no Kafka connector: run"),
        (
            ValueError(NO_CLIENT),
            "Spark's jars do not fit each other: expected Spark 4.0.x or",
        ),
        (ValueError("x" * 500), f"{'x' * 400} ..."),
        (ValueError(""), "no reason given"),
    ],
)
def test_describe_spark_error_is_one_sentence(error: Exception, expected: str) -> None:
    found = describe_spark_error(error)
    assert found.startswith(expected)
    assert "\n" not in found
