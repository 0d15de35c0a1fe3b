"""What worked when and what failed why: counted each time, logged when it is news."""

from __future__ import annotations

import logging

import pytest

from mm2slo_core.catalogue.buckets import COLLECT_BUCKETS
from mm2slo_exporter.health import Durations, Health, Stage
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError

ENDS, GROUPS = Stage.END_OFFSETS, Stage.GROUPS


def problem(kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation="listing", detail="no answer")


@pytest.fixture
def health() -> Health:
    return Health(clock=lambda: 100.0)


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in caplog.records]


def test_a_success_is_timed_and_dated(health: Health) -> None:
    with health.stage("us", ENDS):
        pass
    report = health.report()
    assert report.last_success == {("us", ENDS): 100.0}
    assert sum(report.durations["us", ENDS].counts) == 1
    assert report.errors == {}


def test_a_problem_is_counted_by_its_kind_timed_and_raised(health: Health) -> None:
    with pytest.raises(KafkaOperationError), health.stage("us", ENDS):
        raise problem(ErrorKind.TIMEOUT)
    report = health.report()
    assert report.errors == {("us", ENDS, "timeout"): 1}
    assert report.last_success == {}
    assert sum(report.durations["us", ENDS].counts) == 1
    assert health.failing("us") == {ENDS: "timeout"}
    assert health.failing("eu") == {}


def test_a_failure_is_logged_when_its_reason_is_new_and_when_it_is_over(
    health: Health, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for reason in ("timeout", "timeout", "authorization", "authorization"):
        health.failed("us", ENDS, reason, f"it failed ({reason})")
    health.succeeded("us", ENDS, at=50.0)
    health.succeeded("us", ENDS, at=60.0)
    assert levels(caplog) == ["WARNING", "DEBUG", "WARNING", "DEBUG", "INFO"]
    assert caplog.records[0].__dict__["reason"] == "timeout"
    assert caplog.records[-1].getMessage() == "end_offsets on cluster us works again"
    assert health.report().errors == {
        ("us", ENDS, "timeout"): 2,
        ("us", ENDS, "authorization"): 2,
    }
    assert health.report().last_success == {("us", ENDS): 60.0}
    assert health.failing("us") == {}


def test_parts_that_fail_are_counted_each_time_and_logged_once(
    health: Health, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    denied = [("authorization", "group a"), ("authorization", "group b"), ("timeout", "group c")]
    for failures in (denied, denied, [], denied[:1]):
        with health.stage("us", GROUPS):
            health.incomplete("us", GROUPS, failures)
    messages = [record.getMessage() for record in caplog.records]
    assert sorted(messages[:2]) == ["group a", "group c"]
    assert messages[2:] == ["group a"]
    assert health.report().errors == {
        ("us", GROUPS, "authorization"): 5,
        ("us", GROUPS, "timeout"): 2,
    }
    assert health.failing("us") == {}


def test_a_cluster_has_its_likely_errors_at_zero_from_the_start(health: Health) -> None:
    health.declare("us")
    report = health.report()
    assert report.errors["us", Stage.TIMELINE, "unreachable"] == 0
    assert report.malformed["us", "canary", "truncated"] == 0
    health.malformed("us", "canary", "truncated")
    health.declare("us")
    assert health.report().malformed["us", "canary", "truncated"] == 1


def test_a_report_does_not_change_any_more(health: Health) -> None:
    report = health.report()
    health.succeeded("us", ENDS)
    health.failed("us", ENDS, "timeout", "late")
    assert (report.last_success, report.errors) == ({}, {})


def test_durations_fall_into_the_bucket_that_they_do_not_exceed() -> None:
    found = Durations().add(COLLECT_BUCKETS[0]).add(COLLECT_BUCKETS[-1] + 1)
    assert found.counts[0] == found.counts[-1] == 1
    assert sum(found.counts) == 2
    assert found.total_seconds == COLLECT_BUCKETS[0] + COLLECT_BUCKETS[-1] + 1
