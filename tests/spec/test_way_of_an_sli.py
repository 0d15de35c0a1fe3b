"""The files that an SLI passes, from the bytes of `/metrics` to the JSON of `/slo`."""

from pathlib import Path
from typing import cast

import pytest
from called_files import called_files
from minute_history import objective
from recorder_fakes import AVAILABILITY, exposition
from recorder_fakes.fake_exporter import FakeExporter
from report_service_fixture import AS_OF, MemorySource, start_service

from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS
from mm2slo_report.recording.exporter_scraper import ScrapeTarget
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.recorder_history import RecorderSource
from mm2slo_store.store import Store

MOST_FILES = 24
AROUND_REQUESTS = {
    "analytics/mm2slo_report/web/operation_routes.py",
    "analytics/mm2slo_report/web/report_app.py",
    "analytics/mm2slo_report/web/request_checks.py",
    "core/mm2slo_web/service_telemetry.py",
}
"""They count, log and check every request, and never see an SLI."""
STEPS = 6


def test_sli_passes_few_files_from_scraped_page_to_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [AS_OF - STEPS * STEP_MS]
    with FakeExporter() as exporter, Store.open(tmp_path / "r.db", clock=lambda: AS_OF) as store:
        recorder = Recorder([ScrapeTarget.at(exporter.address)], store, lambda: clock[0])
        service = start_service(
            store,
            cast("MemorySource", RecorderSource(store)),
            objectives=(objective(0.999, window=3 * 86_400.0),),
            recorder=recorder,
        )
        with called_files() as files:
            for minute in range(STEPS * STEP_MS // MINUTE_MS + 1):
                counts = (10.0 * minute, 11.0 * minute, 0.0)
                exporter.body = exposition({AVAILABILITY: counts}, started=1.0)
                recorder.run_once()
                clock[0] += MINUTE_MS
            [entry] = service.get("/slo")["entries"]
        recorder.close()
    good, total = entry["events"]["good"], entry["events"]["total"]
    assert total > 0
    assert entry["sli_ratio"] == good / total == pytest.approx(10 / 11)
    passed = sorted(files.keys() - AROUND_REQUESTS)
    with capsys.disabled():
        print(f"\nAn SLI passes {len(passed)} files:", *passed, sep="\n  ")
    assert len(passed) <= MOST_FILES
