"""Reports while the recorder runs."""

from dataclasses import dataclass

import pytest
from report_service_fixture import AS_OF, start_service

from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS
from mm2slo_report.recording.recorder_history import RecorderHealth, TargetHealth
from mm2slo_store.store import Store

SEEN = TargetHealth(name="http://a/metrics", scrapes=1, indicators=5)
SHOWN = {AS_OF: "2026-07-14T10:30:00Z", AS_OF - MINUTE_MS: "2026-07-14T10:29:00Z"}


@dataclass
class FakeRecorder:
    """A recorder with a given health."""

    health: RecorderHealth


@pytest.mark.parametrize(
    ("until", "as_of"),
    [
        (AS_OF, AS_OF),
        (AS_OF - STEP_MS, AS_OF - MINUTE_MS),  # about to be stored
        (AS_OF - 2 * STEP_MS, AS_OF),  # missing
        (AS_OF + 5 * MINUTE_MS, AS_OF),  # the clock went back
        (None, AS_OF),
    ],
)
def test_as_of_waits_for_minute_about_to_be_stored(
    store: Store, until: int | None, as_of: int
) -> None:
    recorder = FakeRecorder(RecorderHealth(targets=(SEEN,), recorded_until=until))
    service = start_service(store, recorder=recorder)
    assert service.get("/slo")["as_of"] == SHOWN[as_of]
    requested = service.get("/slo?at=2026-07-14T10:30:05Z")
    assert requested["as_of"] == SHOWN[AS_OF]


def test_report_before_first_recorded_minute_has_warning(store: Store) -> None:
    warning = "no data recorded yet: the first figures follow within five minutes"
    recorder = FakeRecorder(RecorderHealth(targets=(SEEN,)))
    service = start_service(store, recorder=recorder)
    assert service.get("/slo")["warnings"] == [warning]
    assert warning in service.client.get("/").text
    recorder.health = RecorderHealth(targets=(SEEN,), recorded_until=AS_OF)
    assert service.get("/slo")["warnings"] == []
    recorder.health = RecorderHealth(recorded_by="another")
    assert service.get("/slo")["warnings"] == []


def test_recorder_without_scrapes_has_single_warning(store: Store) -> None:
    away = TargetHealth(name="http://a/metrics", scrapes=1, failures=1, problem="no connection")
    service = start_service(store, recorder=FakeRecorder(RecorderHealth(targets=(away,))))
    assert service.get("/slo")["warnings"] == ["http://a/metrics cannot be scraped: no connection"]
