"""What a user sees of a run that goes on."""

from __future__ import annotations

import io
import json
import logging
import re
from typing import TYPE_CHECKING

from rich.console import Console

from mm2slo_audit.run.run_progress import Progress, Stage, shown

if TYPE_CHECKING:
    import pytest


def tell(progress: Progress) -> None:
    progress.stage(Stage.READING, "1 topic")
    progress.expect(2_000)
    for read in (100, 250, 1_000, 1_050):
        progress.read(read)
    progress.say("retention overtook the reading")


def test_off_a_terminal_each_stage_and_each_tenth_is_a_line_of_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = logging.getLogger().handlers[:]
    with shown(Console(file=io.StringIO(), force_terminal=False)) as progress:
        tell(progress)
    assert logging.getLogger().handlers == before
    told = capsys.readouterr()
    assert told.out == ""
    lines = [json.loads(line) for line in told.err.splitlines()]
    assert [(each["level"], each.get("stage"), each.get("records")) for each in lines] == [
        ("info", "reading", None),
        ("info", "reading", 250),
        ("info", "reading", 1_000),
        ("warning", None, None),
    ]
    assert lines[1]["message"] == "read 250 of about 2000 records"


def test_on_a_terminal_one_line_has_stage_records_and_the_time_left() -> None:
    written = io.StringIO()
    with shown(Console(file=written, force_terminal=True, width=120)) as progress:
        tell(progress)
    text = written.getvalue()
    assert "retention overtook the reading" in text
    before, counted, after = text.rpartition("1,050/2,000")
    assert counted
    assert "reading both sides: 1 topic" in before.splitlines()[-1]
    # Since the stage started, and until its end.
    assert len(re.findall(r"\d:\d\d:\d\d", after.splitlines()[0])) == 2


def test_a_stage_begins_without_the_figures_of_the_one_before() -> None:
    written = io.StringIO()
    with shown(Console(file=written, force_terminal=True, width=120)) as progress:
        tell(progress)
        progress.stage(Stage.JUDGING)
    last = written.getvalue().rpartition(Stage.JUDGING.value)[2]
    assert "2,000" not in last
