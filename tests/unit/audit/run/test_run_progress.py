"""Progress of a run on a terminal and in logs."""

import io
import json
import logging
import re

from rich.console import Console

from mm2slo_audit.run_progress import RunProgress, RunStage, show_progress


def report_progress(progress: RunProgress) -> None:
    progress.stage(RunStage.READING, "1 topic")
    progress.expect(2_000)
    for read in (100, 250, 1_000, 1_050):
        progress.read(read)
    progress.warn("retention overtook the reading")


def test_show_progress_without_terminal_logs_stages_and_tenths_as_json() -> None:
    before = logging.getLogger().handlers[:]
    written = io.StringIO()
    with show_progress(Console(file=written, force_terminal=False)) as progress:
        report_progress(progress)
    assert logging.getLogger().handlers == before
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(each["level"], each.get("stage"), each.get("records")) for each in lines] == [
        ("INFO", "reading", None),
        ("INFO", "reading", 250),
        ("INFO", "reading", 1_000),
        ("WARNING", None, None),
    ]
    assert lines[1]["message"] == "read 250 of about 2000 records"


def test_show_progress_on_terminal_shows_stage_records_and_time_left() -> None:
    written = io.StringIO()
    with show_progress(Console(file=written, force_terminal=True, width=120)) as progress:
        report_progress(progress)
    text = written.getvalue()
    assert "retention overtook the reading" in text
    before, counted, after = text.rpartition("1,050/2,000")
    assert counted
    assert "reading both sides: 1 topic" in before.splitlines()[-1]
    # Elapsed and remaining time.
    assert len(re.findall(r"\d:\d\d:\d\d", after.splitlines()[0])) == 2


def test_show_progress_new_stage_resets_counts() -> None:
    written = io.StringIO()
    with show_progress(Console(file=written, force_terminal=True, width=120)) as progress:
        report_progress(progress)
        progress.stage(RunStage.JUDGING)
    last = written.getvalue().rpartition(RunStage.JUDGING.value)[2]
    assert "2,000" not in last
