"""Requests as a step ends, before the recorder has stored it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from minute_history import AVAILABILITY, FLOW, objective
from report_service_fixture import AS_OF, MemorySource, start_service

from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, Indicator, Tally
from mm2slo_report.recording.recorder_history import RecorderHealth, RecorderSource, TargetHealth
from mm2slo_store.store import Store

OF = Indicator(FLOW, AVAILABILITY)
SEEN = TargetHealth(name="http://a/metrics", scrapes=1, indicators=5)


@dataclass
class FakeRecorder:
    """A recorder that stores steps on request."""

    store: Store
    health: RecorderHealth = field(default_factory=lambda: RecorderHealth(targets=(SEEN,)))

    def record(self, end: int) -> None:
        """Store a step with three hundred good events."""
        self.store.record_step(end, {OF: Tally(300.0, 300.0, 0.0)})
        self.health = RecorderHealth(targets=(SEEN,), recorded_until=end)


def test_new_objective_is_unchanged_until_step_is_stored(tmp_path: Path) -> None:
    """One missing step of six would lower coverage to no data."""
    with Store.open(tmp_path / "r.db", clock=lambda: AS_OF) as store:
        recorder = FakeRecorder(store)
        for ago in range(5, 0, -1):
            recorder.record(AS_OF - ago * STEP_MS)
        service = start_service(
            store,
            cast("MemorySource", RecorderSource(store)),
            objectives=(objective(0.999, window=3 * 86_400.0),),
            recorder=recorder,
            cache_seconds=30.0,
        )

        def read() -> Any:
            entry = service.get("/slo")["entries"][0]
            detail = service.get("/slo/us-to-eu-availability")["entry"]
            history = service.get("/slo/us-to-eu-availability/history?step=1d")
            assert detail == entry
            assert history["end"] == history["as_of"] == entry["as_of"]
            assert history["points"][-1]["total"] == entry["events"]["total"]
            return entry

        service.clock[0] = AS_OF + 50
        before = read()
        assert (before["as_of"], before["status"]) == (utc_text(AS_OF - MINUTE_MS), "met")
        assert (before["coverage"]["ratio"], before["coverage"]["samples"]) == (1.0, 25)
        recorder.record(AS_OF)
        service.clock[0] = AS_OF + 150
        after = read()
        assert (after["as_of"], after["coverage"]["ratio"]) == (utc_text(AS_OF), 1.0)
        assert after["events"]["total"] == before["events"]["total"] + 300
        # Within a step nothing is missing yet.
        service.clock[0] = AS_OF + 4 * MINUTE_MS + 10
        assert read()["coverage"]["ratio"] == 1.0
        # A step that is never stored delays `as_of` by at most one minute.
        service.clock[0] = AS_OF + STEP_MS + MINUTE_MS + 10
        entry = service.get("/slo")["entries"][0]
        assert entry["as_of"] == utc_text(AS_OF + STEP_MS + MINUTE_MS)
        assert entry["coverage"]["samples"] == 30
        assert entry["coverage"]["expected_samples"] == 35
