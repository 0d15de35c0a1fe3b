"""The files that an SLI passes, from the bytes of `/metrics` to the JSON of `/slo`."""

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest
from minute_history import objective
from recorder_fakes import AVAILABILITY, exposition
from recorder_fakes.fake_exporter import FakeExporter
from report_service_fixture import AS_OF, MemorySource, start_service

import mm2slo_core
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS
from mm2slo_report.recording.exporter_scraper import ScrapeTarget
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.recorder_history import RecorderSource
from mm2slo_store.store import Store

ROOT = Path(mm2slo_core.__file__).parents[2]
ROOMS = ("core", "exporter", "analytics", "alerts", "dashboards", "cli")
MOST_FILES = 26
AROUND_REQUESTS = {
    "analytics/mm2slo_report/web/operation_routes.py",
    "analytics/mm2slo_report/web/report_app.py",
    "analytics/mm2slo_report/web/request_checks.py",
    "core/mm2slo_web/service_telemetry.py",
}
"""They count, log and check every request, and never see an SLI."""
STEPS = 6


@contextmanager
def called_files() -> Iterator[set[str]]:
    """The product's files with a function that was called, in any thread that starts meanwhile."""
    names: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        # Bodies of modules and classes run at import: they have no optimized local variables.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            names.add(frame.f_code.co_filename)

    files: set[str] = set()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        paths = [Path(each) for each in names if Path(each).is_relative_to(ROOT)]
        relative = [each.relative_to(ROOT) for each in paths]
        files.update(str(each) for each in relative if each.parts[0] in ROOMS)


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
    with capsys.disabled():
        print(f"\nAn SLI passes {len(files - AROUND_REQUESTS)} files:", end="")
        print("", *sorted(files - AROUND_REQUESTS), sep="\n  ")
    assert len(files - AROUND_REQUESTS) <= MOST_FILES
