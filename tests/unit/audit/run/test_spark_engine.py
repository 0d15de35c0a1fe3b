"""The engine's port on Spark: deletion of folders, and corrupt files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from audit_runs.fake_ports import CONFIG
from generated_units import Faults, generate
from pyspark.errors import PySparkException

from mm2slo_audit.audit_ports import AuditEngineError
from mm2slo_audit.engine.unit_columns import RECORD_SCHEMA
from mm2slo_audit.scope.scope_assembly import RunScope
from mm2slo_audit.spark import landed_records
from mm2slo_audit.spark.run_folders import run_folder
from mm2slo_audit.spark.spark_engine import SparkEngine, tune_for_records
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_core.audit.audit_scope import NotAuditedReason, UnitScope, Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.config.secret import Secret
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

WINDOW = Window(1_000, 2_000)
FEW = Faults(
    lost=1, altered=1, moved=0, duplicate=1, extra=1, out_of_order=1, identical=1, replays=(),
    expired=0, unauditable=0, tail=10,
)  # fmt: skip


def folder(directory: Path, run: str, flow: str = "us-to-eu", window: Window = WINDOW) -> Path:
    made = type(directory)(run_folder(str(directory), flow, window, run))
    (made / "records").mkdir(parents=True)
    (made / "records" / "part-0.parquet").write_bytes(b"x")
    return made


def test_discard_deletes_only_folders_of_run(spark: SparkSession, tmp_path: Path) -> None:
    engine = SparkEngine(spark, CONFIG, str(tmp_path / "audit"))
    gone = [folder(tmp_path / "audit", "dead"), folder(tmp_path / "audit", "dead", "eu-to-us")]
    other_run = folder(tmp_path / "audit", "alive")
    other_window = folder(tmp_path / "audit", "dead", window=Window(2_000, 3_000))
    engine.discard("dead", WINDOW)
    assert [each.exists() for each in gone] == [False, False]
    assert other_run.exists()
    assert other_window.exists()
    # Empty parent folders are deleted as well.
    assert not (tmp_path / "audit" / "flow=eu-to-us").exists()
    engine.discard("dead", WINDOW)


def test_delete_removes_superseded_folders_by_stored_path(
    spark: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine(spark, CONFIG, str(tmp_path / "audit"))
    old = folder(tmp_path / "audit", "old")
    stranger = tmp_path / "stranger" / "folder"
    stranger.mkdir(parents=True)
    # Hadoop's paths are not percent-encoded.
    engine.delete([f"file:{old}", f"file:{tmp_path}/never-there", f"file:{stranger}"])
    assert not old.exists()
    assert stranger.parent.exists()


def test_judge_corrupt_parquet_file_raises_one_line_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    unit = generate(1, partitions=1, size=400, faults=FEW)
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    records = spark.read.schema(RECORD_SCHEMA).parquet(str(tmp_path / "part-0.parquet"))
    polls = spark.createDataFrame([], "topic int, flow int, side byte, partition int, end long,"
                                      " earliest long, latest long")  # fmt: skip
    landed = landed_records.LandedFrames(records, polls, (unit.scope,))
    with pytest.raises(AuditEngineError) as raised:
        landed.judge([unit.scope], Sample(1.0))
    text = str(raised.value)
    assert text.startswith("judging failed: ")
    assert "part-0.parquet" in text
    assert "\n" not in text
    assert len(text) < 500


def test_tune_for_records_sets_compiler_and_small_heap_only_for_local_master() -> None:
    option = "spark.driver.extraJavaOptions"
    own = SparkOptions(conf={option: "-Xss4m"})
    quick = tune_for_records(own, 999_999)
    assert quick.conf[option] == "-Xss4m -XX:TieredStopAtLevel=1"
    assert quick.driver_memory == "1g"
    large = tune_for_records(own, 10_000_000)
    assert large.conf[option].startswith("-Xss4m -XX:Tier4InvocationThreshold=")
    assert large.driver_memory is None
    assert tune_for_records(own, 1_000_000) == replace(large, driver_memory="1g")
    given = replace(own, driver_memory="3g")
    assert tune_for_records(given, 1_000_000) == replace(large, driver_memory="3g")
    cluster = SparkOptions(master="spark://host:7077")
    assert tune_for_records(cluster, 1) is cluster


def test_land_names_unapplied_settings_and_fails_at_once_on_full_disk(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scope = generate(1, partitions=1, size=400, faults=FEW).scope
    scoped = RunScope((scope, replace(scope, index=1)))
    attempts = []

    def fail(_landing: object, scopes: Sequence[UnitScope], _path: str) -> None:
        attempts.append(len(scopes))
        raise PySparkException(
            "Job aborted. Caused by: java.io.IOException: No space left on device"
        )

    monkeypatch.setattr(landed_records._Landing, "_read", fail)
    us = CONFIG.clusters["us"].model_copy(update={"client": {"ssl.crl.location": Secret("c.pem")}})
    config = CONFIG.model_copy(update={"clusters": {**CONFIG.clusters, "us": us}})
    engine = SparkEngine(spark, config, str(tmp_path))
    with pytest.raises(AuditEngineError, match=r"^reading failed: no space left on the disk of"):
        engine.land(scoped, Sample(1.0), "run", lambda _read: None)
    assert attempts == [2]
    assert caplog.messages == [
        "clusters.us.client: ssl.crl.location not applied by the audit, because Kafka's Java client"
        " has no equivalent"
    ]


def test_land_reports_all_topics_of_cluster_that_stops_responding_after_one_attempt(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = generate(1, partitions=1, size=400, faults=FEW).scope
    (flow,) = scope.flows
    back, other = (
        replace(scope, flows=(replace(flow, flow=Flow.parse(label)),))
        for label in ("eu->us", "ap->eu")
    )
    units = (scope, scope, scope, back, other)
    scoped = RunScope(tuple(replace(each, index=at) for at, each in enumerate(units)))
    attempts = []

    def fail(_landing: object, scopes: Sequence[UnitScope], _path: str) -> None:
        attempts.append(len(scopes))
        if all(each.index != 4 for each in scopes):
            raise PySparkException("TimeoutException: Timeout of 60000ms expired")

    def time_out(*_arguments: object) -> None:
        raise KafkaOperationError(
            ErrorKind.TIMEOUT, cluster="us", operation="reading start offsets", detail="no answer"
        )

    monkeypatch.setattr(landed_records._Landing, "_write", fail)
    monkeypatch.setattr(landed_records, "read_log_starts", time_out)
    config = CONFIG.model_copy(
        update={"clusters": {**CONFIG.clusters, "ap": CONFIG.clusters["us"]}}
    )
    monkeypatch.setattr(
        landed_records, "read_landed", lambda *_: landed_records.empty_records(spark)
    )
    landed = landed_records.land_records(
        spark, scoped, config, Sample(1.0), str(tmp_path), run="run"
    )
    assert [each.index for each in landed.scopes] == [4]
    assert {each.reason for each in landed.failed} == {NotAuditedReason.UNREACHABLE}
    assert [str(*each.flows) for each in landed.failed] == ["eu->us", *["us->eu"] * 3]
    assert attempts == [1, 1]


def test_land_reports_topics_without_leader_after_one_attempt(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = generate(1, partitions=1, size=400, faults=FEW).scope
    units = tuple(replace(scope, index=at, target_topic=f"us.t{at}") for at in range(8))
    dead = TopicPartition("us.t5", 0)
    attempts = []

    def fail(_landing: object, scopes: Sequence[UnitScope], _path: str) -> None:
        attempts.append([each.index for each in scopes])
        if any(each.target_topic == dead.topic for each in scopes):
            raise PySparkException("TimeoutException: Timeout of 120000ms expired")

    class Cluster:
        def start_offsets(self, keys: Sequence[TopicPartition]) -> OffsetReading:
            errors = {key: ErrorKind.UNREACHABLE for key in keys if key == dead}
            read = {key: 0 for key in keys if key not in errors}
            return OffsetReading(read, errors, 0.0, 0.0)

    monkeypatch.setattr(landed_records._Landing, "_write", fail)
    monkeypatch.setattr(
        landed_records, "read_landed", lambda *_: landed_records.empty_records(spark)
    )
    client = cast("ClusterClient", Cluster())
    landed = landed_records.land_records(
        spark,
        RunScope(units, copies=({},) * 8),
        CONFIG,
        Sample(1.0),
        str(tmp_path),
        run="run",
        clients={"us": client, "eu": client},
    )
    others = [0, 1, 2, 3, 4, 6, 7]
    assert attempts == [list(range(8)), others]
    assert [each.index for each in landed.scopes] == others
    (failed,) = landed.failed
    assert (failed.target_topic, failed.reason) == ("us.t5", NotAuditedReason.UNREACHABLE)
    assert "us.t5-0" in failed.detail
