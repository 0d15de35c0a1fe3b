"""Rows of Spark's Kafka connector as hashed and sampled records of the audit.

Rows are read by the connector's own classes. Its data source takes one range per partition, plans
with a client of its own for each read, and converts each record twice. These classes are not
public: the connector's version is pinned.

Fingerprints, key hashes and strata are those of `mm2slo_core.audit.fingerprint` and `record_sample`
bit for bit, as columns of built-in functions on rows of the connector: key and value binary,
timestamp, headers array<struct<key, value>> (with `includeHeaders`).
"""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mm2slo_audit.engine.unit_columns import side_code
from mm2slo_audit.spark.scan_plan import FlowPlace, Scan, ScanRange, split_ranges
from mm2slo_core.audit.audit_scope import TimestampType
from mm2slo_core.audit.fingerprint import HEADER, KEYED_DIGITS, NULL_FLAGS, STEPS, Identity, Sample
from mm2slo_core.config.client_security import java_properties, java_settings
from mm2slo_core.config.flow_config import ClusterConfig
from mm2slo_core.user_errors import UserError

RECORDS_PER_TASK: Final = 1_500_000
"""Partitions with more offsets are read by several tasks."""
_FEW_TOPICS: Final = 16

# Kafka's defaults fetch 1 MB and return 500 records per poll.
CONSUMER_OPTIONS: Final[dict[str, str]] = {
    "max.poll.records": "5000",
    "max.partition.fetch.bytes": str(4 << 20),
    "fetch.max.bytes": str(64 << 20),
    "receive.buffer.bytes": str(1 << 20),
}


def read_records(
    spark: SparkSession,
    scan: Scan,
    sample: Sample,
    kafka: Mapping[str, str],
) -> DataFrame:
    """The records of *scan* in *sample*, with the columns of `AuditRecord` and without payloads.

    Column `other_time`: the record has another timestamp type than its topic has now.
    *kafka*: settings of Java's consumer for the cluster.
    """
    rows = read_rows(spark, scan, kafka, headers=scan.identity.reads_headers)
    stamped = F.col("timestampType") == _LOG_APPEND_TIME
    kept = sample_rows(
        rows,
        scan.identity,
        sample,
        other_time=stamped if scan.timestamps is TimestampType.CREATE else ~stamped,
        # One that the sample lacks may be the copy of a record in the sample.
        keep_other_times=scan.compares_timestamps,
    )
    return _place_rows(spark, kept, scan.places).select(
        F.col("unit").alias("topic"),
        "flow",
        F.lit(side_code(scan.side)).cast("tinyint").alias("side"),
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        "size",
        "in_records",
        "in_keys",
        "tombstone",
        "masked",
        "other_time",
    )


_LOG_APPEND_TIME: Final = 1
"""`TimestampType.id` of Kafka's clients."""


def sample_rows(
    rows: DataFrame,
    identity: Identity,
    sample: Sample,
    *,
    other_time: Column | None = None,
    keep_other_times: bool = False,
) -> DataFrame:
    """Hashes and strata of the connector's *rows* in *sample*.

    *other_time*: whether a row has another timestamp type than expected, a column of the result;
    *keep_other_times*: also outside the sample.
    """
    columns = record_columns(identity, sample, headers=identity.reads_headers)
    hashed = rows.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("ts"),
        columns.fp.alias("fp"),
        columns.kh.alias("kh"),
        columns.size.cast("int").alias("size"),
        columns.tombstone.alias("tombstone"),
        columns.masked.alias("masked"),
        (F.lit(False) if other_time is None else other_time).alias("other_time"),
        F.spark_partition_id().alias("task"),
    )
    drawn = hashed.withColumns({"in_records": columns.in_records, "in_keys": columns.in_keys})
    if sample.census:
        return drawn.drop("task")
    # A filter is not pushed below what is not deterministic. Below the projection it would hash
    # for itself, in a method that is too large for Java to compile: twice the time of a census.
    kept = "in_records OR in_keys OR other_time" if keep_other_times else "in_records OR in_keys"
    return drawn.where(f"({kept}) AND task >= 0").drop("task")


def read_rows(
    spark: SparkSession, scan: Scan, kafka: Mapping[str, str], *, headers: bool
) -> DataFrame:
    """The connector's rows of *scan*."""
    cores = spark.sparkContext.defaultParallelism
    parts = split_ranges(scan.ranges, min(RECORDS_PER_TASK, -(-scan.offsets // cores)))
    settings = {**CONSUMER_OPTIONS, **kafka, "isolation.level": scan.isolation}
    return range_rows(spark, settings, parts, headers=headers)


def _place_rows(spark: SparkSession, rows: DataFrame, places: Mapping[str, FlowPlace]) -> DataFrame:
    """Add unit and flow by topic."""
    if len(places) <= _FEW_TOPICS:
        (_name, first), *others = places.items()
        unit, flow = F.lit(first.unit), F.lit(first.flow)
        for name, place in others:
            here = F.col("topic") == name
            unit = F.when(here, place.unit).otherwise(unit)
            flow = F.when(here, place.flow).otherwise(flow)
        return rows.withColumns({"unit": unit.cast("int"), "flow": flow.cast("int")})
    listed = json.dumps([[name, *place] for name, place in places.items()])
    parsed = F.from_json(F.lit(listed), "array<array<string>>")
    table = spark.range(1).select(F.explode(parsed).alias("place"))
    named = table.select(
        F.col("place")[0].alias("topic"),
        F.col("place")[1].cast("int").alias("unit"),
        F.col("place")[2].cast("int").alias("flow"),
    )
    return rows.join(F.broadcast(named), on="topic", how="inner")


def connector_options(cluster: ClusterConfig) -> dict[str, str]:
    """Settings of the connector's consumers; contains secrets in clear text.

    Certificates are passed as text, since executors may not have the driver's files. Raises
    UserError for a file that cannot be read and for what Java clients cannot do.
    """
    settings, _unknown = java_settings(cluster.client)
    try:
        security = java_properties(cluster.security.inlined(_read_pem))
    except ValueError as error:
        raise UserError(str(error)) from None
    return {"bootstrap.servers": cluster.bootstrap_servers, **settings, **security}


def _read_pem(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}): expected a PEM file of"
            " clusters.<alias>.security that this user can read"
        ) from None


_POLL_TIMEOUT_MS: Final = 120_000
"""The connector's own default: that of `spark.network.timeout`."""

_ROW: Final = "org.apache.spark.sql.catalyst.InternalRow"

_CLASSES: Final = (
    "org.apache.spark.sql.kafka010.KafkaSourceRDD",
    "org.apache.kafka.common.TopicPartition",
)
"""One of each jar. Py4J takes a class that is missing for a package."""


def range_rows(
    spark: SparkSession, kafka: Mapping[str, str], ranges: Iterable[ScanRange], *, headers: bool
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
        # failOnDataLoss: offsets that retention deleted must fail the read, since records that it
        # skipped in silence would be judged as lost.
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


_BLOCK: Final = 64
"""SHA-256 block size in bytes."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Columns of a landed record that are computed from its bytes."""

    fp: Column
    kh: Column
    size: Column
    in_records: Column
    in_keys: Column
    tombstone: Column
    masked: Column


def record_columns(identity: Identity, sample: Sample, *, headers: bool = True) -> RecordColumns:
    """The landed columns of a connector row.

    *headers* False: the row has no column `headers`, which counts as no headers. The strata read
    columns `fp` and `kh`, so select those first.
    """
    return RecordColumns(
        fp=fingerprint(identity, headers=headers),
        kh=key_hash(identity.hmac_key),
        size=F.coalesce(F.octet_length("key"), F.lit(0))
        + F.coalesce(F.octet_length("value"), F.lit(0)),
        in_records=is_sampled(sample, F.col("fp"), sample.record_threshold),
        in_keys=F.lit(True)
        if sample.census
        else F.coalesce(is_sampled(sample, F.col("kh"), sample.key_threshold), F.lit(False)),
        tombstone=F.col("value").isNull(),
        masked=masked_hashes(identity),
    )


def fingerprint(identity: Identity, *, headers: bool = True) -> Column:
    """The fingerprint of a connector row; bigint. *headers* False: the row has no such column.

    Without ignored headers no lambda is needed: a lambda takes the whole stage out of generated
    code, which costs more than all hashing.
    """
    if identity.hmac_key is not None:
        return _hmac(identity.hmac_key, F.concat(*_message(identity, headers=headers)))
    columns: list[Column] = []
    for name, covered in (("key", identity.key), ("value", identity.value)):
        if covered:
            columns += [F.isnull(name).cast("int"), _empty_if_null(F.col(name))]
    if identity.timestamp:
        columns.append(F.unix_millis("timestamp"))
    if not identity.headers:
        return F.xxhash64(*columns)
    if not headers:
        return F.xxhash64(*columns, F.lit(0), F.lit(0))
    kept = _compared_headers(identity)
    return F.xxhash64(*columns, _count_headers(kept), _null_flags(kept), kept)


def _null_flags(headers: Column) -> Column:
    """A bit for each header whose value is null."""
    # Spark's xxhash64 skips nulls: without the flags a null value would hash like an absent one.
    flags = F.lit(0)
    for place in range(NULL_FLAGS):
        header = F.get(headers, F.lit(place))
        missing = header.isNotNull() & header["value"].isNull()
        flags = flags + F.when(missing, 1 << place).otherwise(0)
    return flags


def key_hash(hmac_key: bytes | None = None) -> Column:
    """The hash of a connector row's key, null without a key; bigint."""
    return _hash_of(F.col("key"), hmac_key)


def masked_hashes(identity: Identity) -> Column:
    """Distinct hashes of the contents of parts that must change; array<bigint>.

    Null, empty and absent ones are left out.
    """
    hashes = [_part_hashes(name, identity.hmac_key) for name in identity.must_change]
    if not hashes:
        return F.array().cast("array<bigint>")
    return F.array_distinct(F.concat(*hashes))


def _contents(name: str) -> Column:
    """What is in a part: of each header of a name."""
    contents = F.array(F.col(name)) if not name.startswith(HEADER) else _header_values(name)
    return F.filter(contents, lambda part: F.octet_length(part) > 0)


def _header_values(name: str) -> Column:
    named = F.filter("headers", lambda h: h["key"] == name.removeprefix(HEADER))
    values = F.transform(named, lambda h: h["value"])
    return F.coalesce(values, F.array().cast("array<binary>"))


def _part_hashes(name: str, hmac_key: bytes | None) -> Column:
    """The name is hashed as well: equal contents of two parts are no copies of each other."""

    def hashed(content: Column) -> Column:
        if hmac_key is None:
            return F.xxhash64(F.lit(name), content)
        return _hmac(hmac_key, F.concat(_field(_to_binary(F.lit(name))), _field(content)))

    return F.transform(_contents(name), hashed)


def _hash_of(part: Column, hmac_key: bytes | None) -> Column:
    hashed = F.xxhash64(part) if hmac_key is None else _hmac(hmac_key, _field(part))
    return F.when(part.isNotNull(), hashed)


def is_sampled(sample: Sample, hashed: Column, threshold: int) -> Column:
    """Whether the stratum has records of that hash; null for null, except in a census."""
    if sample.census:
        return F.lit(True)
    salt = F.lit(sample.salt).cast("bigint")
    drawn = F.pmod(F.xxhash64(salt, hashed), F.lit(STEPS)) < threshold
    return F.when(hashed.isNotNull(), drawn)


def _count_headers(headers: Column) -> Column:
    # size(null) is null or -1, depending on the ANSI mode.
    return F.greatest(F.coalesce(F.size(headers), F.lit(0)), F.lit(0))


def _compared_headers(identity: Identity) -> Column:
    if not identity.ignored_headers:
        return F.col("headers")
    return F.filter("headers", lambda h: ~h["key"].isin(*identity.ignored_headers))


def _empty_if_null(part: Column) -> Column:
    return F.coalesce(part, F.lit(bytearray()))


def _message(identity: Identity, *, headers: bool) -> list[Column]:
    parts = [
        _field(F.col(name))
        for name, covered in (("key", identity.key), ("value", identity.value))
        if covered
    ]
    if identity.timestamp:
        parts.append(_to_binary(F.concat(F.unix_millis("timestamp").cast("string"), F.lit(";"))))
    if identity.headers:
        none = _to_binary(F.lit("0;"))
        if not headers:
            return [*parts, none]
        kept = _compared_headers(identity)
        fields = F.aggregate(
            kept,
            F.lit(bytearray()),
            lambda joined, h: F.concat(joined, _field(_to_binary(h["key"])), _field(h["value"])),
        )
        number = _to_binary(F.concat(F.size(kept).cast("string"), F.lit(";")))
        parts.append(
            F.when(_count_headers(F.col("headers")) == 0, none).otherwise(F.concat(number, fields))
        )
    return parts


def _to_binary(text: Column) -> Column:
    return text.cast("binary")


def _field(part: Column) -> Column:
    length = _to_binary(F.concat(F.octet_length(part).cast("string"), F.lit(":")))
    return F.when(part.isNull(), _to_binary(F.lit("-"))).otherwise(F.concat(length, part))


def _hmac(key: bytes, message: Column) -> Column:
    """HMAC-SHA-256 (RFC 2104), its first digits as a number."""
    padded = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner_pad, outer_pad = (
        F.lit(bytearray(byte ^ mask for byte in padded)) for mask in (0x36, 0x5C)
    )
    inner = F.unhex(F.sha2(F.concat(inner_pad, message), 256))
    outer = F.sha2(F.concat(outer_pad, inner), 256)
    return F.conv(F.substr(outer, F.lit(1), F.lit(KEYED_DIGITS)), 16, 10).cast("bigint")
