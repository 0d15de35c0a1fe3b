"""Successes and failures are counted each time and logged when they change."""

import logging

import pytest

from mm2slo_core.catalogue.metric import COLLECT_BUCKETS
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage, Durations
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

ENDS, GROUPS = CollectionStage.END_OFFSETS, CollectionStage.GROUPS


def problem(kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation="listing", detail="no answer")


@pytest.fixture
def health() -> CollectionHealth:
    return CollectionHealth(clock=lambda: 100.0)


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in caplog.records]


def test_stage_success_records_time_and_duration(health: CollectionHealth) -> None:
    with health.stage("us", ENDS):
        pass
    report = health.report()
    assert report.last_success == {("us", ENDS): 100.0}
    assert sum(report.durations["us", ENDS].counts) == 1
    assert report.errors == {}


def test_stage_failure_is_counted_by_kind_and_raised(health: CollectionHealth) -> None:
    with pytest.raises(KafkaOperationError), health.stage("us", ENDS):
        raise problem(ErrorKind.TIMEOUT)
    report = health.report()
    assert report.errors == {("us", ENDS, "timeout"): 1}
    assert report.last_success == {}
    assert sum(report.durations["us", ENDS].counts) == 1
    assert health.failing_stages("us") == {ENDS: "timeout"}
    assert health.failing_stages("eu") == {}


def test_record_failure_logs_new_reasons_and_recovery(
    health: CollectionHealth, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for reason in ("timeout", "timeout", "authorization", "authorization"):
        health.record_failure("us", ENDS, reason, f"it failed ({reason})")
    health.record_success("us", ENDS, at=50.0)
    health.record_success("us", ENDS, at=60.0)
    assert levels(caplog) == ["WARNING", "DEBUG", "WARNING", "DEBUG", "INFO"]
    assert caplog.records[0].__dict__["reason"] == "timeout"
    assert caplog.records[-1].getMessage() == "end_offsets on cluster us has recovered"
    assert health.report().errors == {
        ("us", ENDS, "timeout"): 2,
        ("us", ENDS, "authorization"): 2,
    }
    assert health.report().last_success == {("us", ENDS): 60.0}
    assert health.failing_stages("us") == {}


def test_record_partial_failures_counts_all_and_logs_new_reasons(
    health: CollectionHealth, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    denied = [("authorization", "group a"), ("authorization", "group b"), ("timeout", "group c")]
    for failures in (denied, denied, [], denied[:1]):
        with health.stage("us", GROUPS):
            health.record_partial_failures("us", GROUPS, failures)
    messages = [record.getMessage() for record in caplog.records]
    assert sorted(messages[:2]) == ["group a", "group c"]
    assert messages[2:] == ["group a"]
    assert health.report().errors == {
        ("us", GROUPS, "authorization"): 5,
        ("us", GROUPS, "timeout"): 2,
    }
    assert health.failing_stages("us") == {}


def test_create_counters_starts_error_counters_at_zero(health: CollectionHealth) -> None:
    health.create_counters("us")
    report = health.report()
    assert report.errors["us", CollectionStage.TIMELINE, "unreachable"] == 0
    assert report.malformed["us", "canary", "truncated"] == 0
    health.record_malformed("us", "canary", "truncated")
    health.create_counters("us")
    assert health.report().malformed["us", "canary", "truncated"] == 1


def test_health_report_is_immutable(health: CollectionHealth) -> None:
    report = health.report()
    health.record_success("us", ENDS)
    health.record_failure("us", ENDS, "timeout", "late")
    assert (report.last_success, report.errors) == ({}, {})


def test_durations_add_counts_in_smallest_matching_bucket() -> None:
    found = Durations().add(COLLECT_BUCKETS[0]).add(COLLECT_BUCKETS[-1] + 1)
    assert found.counts[0] == found.counts[-1] == 1
    assert sum(found.counts) == 2
    assert found.total_seconds == COLLECT_BUCKETS[0] + COLLECT_BUCKETS[-1] + 1
