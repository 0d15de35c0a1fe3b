"""Self-test: audits generated records with known faults by Spark and Parquet, without Kafka."""

from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.engine.unit_columns import POLL_SCHEMA, RECORD_SCHEMA, SOURCE, TARGET
from mm2slo_audit.spark.connector_rows import sample_rows
from mm2slo_audit.spark.landed_records import read_landed, write_landed
from mm2slo_core.audit.audit_scope import (
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

_EACH: Final = 500
"""Records per source partition; there are two."""

_LOST: Final = 200
"""Offset in partition 0 of the record without a copy."""
_START: Final = 1_700_000_000_000
_IDENTITY: Final = Identity()
_CENSUS: Final = Sample(1.0)

_COLUMNS: Final = RECORD_SCHEMA.replace(",", "").split()[6::2]
"""Columns of a record after topic, flow and side."""
_EXPECTED: Final = {Verdict.MATCHED: 2 * _EACH - 1, Verdict.LOST: 1, Verdict.DUPLICATE: 1}


def run_self_test(spark: SparkSession, folder: str) -> None:
    """Land, read and judge records in *folder*.

    Raises UserError if the findings are not as expected.
    """
    records, polls = f"{folder}/records", f"{folder}/polls"
    _land(spark, records)
    _polls(spark).write.parquet(polls)
    (outcome,) = judge(
        spark,
        read_landed(spark, [records]),
        spark.read.schema(POLL_SCHEMA).parquet(polls),
        [_scope()],
        _CENSUS,
    )
    found = {verdict: count for verdict, count in outcome.counts.items() if count}
    if found != _EXPECTED:
        actual = ", ".join(f"{count} {verdict}" for verdict, count in found.items())
        expected = ", ".join(f"{count} {verdict}" for verdict, count in _EXPECTED.items())
        raise UserError(
            f"the self-test found {actual or 'nothing'}; expected {expected}: Spark on this machine"
            " does not behave as the audit requires; please report it with the output of"
            " `java -version` and `pip show pyspark`"
        )


def _rows(spark: SparkSession) -> DataFrame:
    """Rows as from the connector; the copies lack one record and have another one twice."""
    sources = spark.range(2 * _EACH).selectExpr(
        "'self-test' as topic",
        "cast(id % 2 as int) as partition",
        "id div 2 as offset",
        f"timestamp_millis({_START} + id div 2) as timestamp",
        "binary(string(id % 50)) as key",
        "binary(string(id)) as value",
        "array(named_struct('key', 'trace', 'value', binary(string(id)))) as headers",
        f"{SOURCE} as side",
    )
    copies = sources.where(f"partition <> 0 or offset <> {_LOST}").selectExpr(
        "* except (side, offset)",
        f"offset - cast(partition = 0 and offset > {_LOST} as int) as offset",
        f"{TARGET} as side",
    )
    again = copies.where("partition = 1 and offset = 0").selectExpr(
        "* except (offset)", f"cast({_EACH} as bigint) as offset"
    )
    return sources.unionByName(copies).unionByName(again)


def _land(spark: SparkSession, folder: str) -> None:
    rows = _rows(spark)
    sides = [
        sample_rows(rows.where(f"side = {side}"), _IDENTITY, _CENSUS).selectExpr(
            "0 as topic", "0 as flow", f"cast({side} as tinyint) as side", *_COLUMNS
        )
        for side in (SOURCE, TARGET)
    ]
    landed = sides[0].unionByName(sides[1]).coalesce(2)
    observed = landed.observe(Observation("landed"), F.count(F.lit(1)).alias("rows"))
    write_landed(observed, folder, masked=False)


def _polls(spark: SparkSession) -> DataFrame:
    return spark.range(4).selectExpr(
        "0 as topic",
        "0 as flow",
        "cast(id % 2 as tinyint) as side",
        "cast(id div 2 as int) as partition",
        f"cast({_EACH + 1} as bigint) as end",
        f"cast({_START} as bigint) as earliest",
        f"cast({_START + 2 * _EACH} as bigint) as latest",
    )


def _scope() -> UnitScope:
    ends = (_EACH - 1, _EACH + 1)
    return UnitScope(
        index=0,
        target_topic="source.self-test",
        flows=(
            FlowScope(
                Flow("source", "target"),
                "self-test",
                tuple(SourcePartition(number, 0, 0, _EACH, _EACH) for number in range(2)),
            ),
        ),
        partitions=tuple(TargetPartition(number, 0, 0, end) for number, end in enumerate(ends)),
        window=Window(_START, _START + _EACH),
        identity=_IDENTITY,
        taken_at=_START + _EACH,
    )
