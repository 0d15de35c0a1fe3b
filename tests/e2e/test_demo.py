"""`mm2slo demo` in a terminal, as `make demo` runs it: live view, audit, exit and cleanup."""

import re
import urllib.request
from pathlib import Path

import pytest
from demos import all_exited, descendants, run_demo

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("demo")]


def test_demo_live_view_fits_80_columns_and_audits_after_ctrl_c(tmp_path: Path) -> None:
    with run_demo(tmp_path) as terminal:
        terminal.read(lambda seen: seen.count("RUNNING") >= 2 and "3/3 ready" in seen)
        below = descendants(terminal.pid)
        with urllib.request.urlopen(terminal.page, timeout=60) as response:
            page = response.read().decode()
        terminal.press("\x03")
        assert terminal.end() == 130
    assert "<h1>" in page
    assert "us-&gt;eu" in page
    assert all_exited(below)
    assert list(tmp_path.iterdir()) == []
    seen = terminal.seen
    # The verdict is one line, which the terminal wraps.
    assert max(len(line) for line in terminal.lines if not line.startswith("verdict: ")) == 80
    for text in (
        "starting MirrorMaker 2",
        "us->eu",
        "/metrics",
        "Prometheus",
        "Ctrl-C or q to exit",
    ):
        assert text in seen
    for text in ("census: every record of the window was compared", "us.payments", "eu.clicks"):
        assert text in seen
    assert re.search(r"verdict: clean; [\d,]+ matched; .*complete up to \d{4}-", seen)
    assert "Traceback" not in seen
