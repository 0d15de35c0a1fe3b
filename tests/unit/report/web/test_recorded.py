"""What a report speaks of while the recorder is at work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from serving import AS_OF, served

from mm2slo_core.reporting.history import MINUTE_MS
from mm2slo_report.recording.health import RecorderHealth, TargetHealth

if TYPE_CHECKING:
    from mm2slo_store import Store

SEEN = TargetHealth(name="http://a/metrics", scrapes=1, indicators=5)
SHOWN = {AS_OF: "2026-07-14T10:30:00Z", AS_OF - MINUTE_MS: "2026-07-14T10:29:00Z"}


@dataclass
class Recorder:
    """How it goes."""

    health: RecorderHealth


@pytest.mark.parametrize(
    ("until", "as_of"),
    [
        (AS_OF, AS_OF),
        (AS_OF - MINUTE_MS, AS_OF - MINUTE_MS),  # about to be stored
        (AS_OF - 2 * MINUTE_MS, AS_OF),  # missing
        (AS_OF + 5 * MINUTE_MS, AS_OF),  # the clock went back
        (None, AS_OF),
    ],
)
def test_a_minute_that_is_about_to_be_stored_is_waited_for(
    store: Store, until: int | None, as_of: int
) -> None:
    recorder = Recorder(RecorderHealth(targets=(SEEN,), recorded_until=until))
    service = served(store, recorder=recorder)
    assert service.get("/slo")["as_of"] == SHOWN[as_of]
    asked = service.get("/slo?at=2026-07-14T10:30:05Z")
    assert asked["as_of"] == SHOWN[AS_OF]


def test_before_the_first_whole_minute_a_report_says_so(store: Store) -> None:
    told = "nothing is recorded yet: the first figures come with the first whole minute"
    recorder = Recorder(RecorderHealth(targets=(SEEN,)))
    service = served(store, recorder=recorder)
    assert service.get("/slo")["warnings"] == [told]
    assert told in service.client.get("/").text
    recorder.health = RecorderHealth(targets=(SEEN,), recorded_until=AS_OF)
    assert service.get("/slo")["warnings"] == []
    recorder.health = RecorderHealth(recorded_by="another")
    assert service.get("/slo")["warnings"] == []


def test_a_recorder_that_reads_nothing_says_that_alone(store: Store) -> None:
    away = TargetHealth(name="http://a/metrics", scrapes=1, failures=1, problem="no connection")
    service = served(store, recorder=Recorder(RecorderHealth(targets=(away,))))
    assert service.get("/slo")["warnings"] == ["http://a/metrics cannot be scraped: no connection"]
