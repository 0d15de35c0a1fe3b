"""Measurements as files and documents: rejected runs, pairs, tables and drawings."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from perf_samples import report_of, run_of

from mm2slo_core.perf.perf_report import (
    PerfCellResult,
    PerfReport,
    PerfRun,
    compare,
    perf_html,
    perf_markdown,
    ratio_text,
    read_measurement,
)
from mm2slo_core.perf.perf_schedule import PerfMode
from mm2slo_core.user_errors import UserError


def test_report_is_read_as_it_was_written() -> None:
    report = report_of(PerfMode.LATENCY, [run_of(0.1)])
    read = PerfReport.parse(report.as_json(), "a.json")
    assert read.as_json() == report.as_json()
    assert read.cells[0].runs[0].latencies == report.cells[0].runs[0].latencies


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{",
            "is no measurement of `mm2slo perf`: the file is not a JSON object; expected the file",
        ),
        ("{}", "a.json is no measurement of `mm2slo perf`: flow is missing; expected the file"),
        ('{"flow": 1}', "a.json is no measurement of `mm2slo perf`: flow has the wrong type"),
    ],
)
def test_other_files_are_refused(text: str, expected: str) -> None:
    with pytest.raises(UserError, match=re.escape(expected)):
        PerfReport.parse(text, "a.json")


def test_unreadable_file_has_the_plain_reason(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"{\xff")
    for name, reason in (
        ("none.json", "No such file or directory"),
        ("bytes.json", "byte 1 is not UTF-8"),
    ):
        with pytest.raises(UserError) as refused:
            read_measurement(tmp_path / name)
        assert str(refused.value) == f"{tmp_path / name} cannot be read: {reason}"


def test_format_of_another_version_is_refused() -> None:
    content = json.loads(report_of(PerfMode.LATENCY, [run_of(0.1)]).as_json())
    with pytest.raises(UserError, match="format 2, 1 cells; expected format 1"):
        PerfReport.parse(json.dumps({**content, "format": 2}), "a.json")


def cells(mode: PerfMode, *runs: list[PerfRun]) -> list[PerfCellResult]:
    return report_of(mode, *runs).cells


def test_pair_with_a_rejected_run_does_not_count() -> None:
    base = [run_of(0.1), run_of(0.1, problems=("late",)), run_of(0.1), run_of(0.1)]
    other = [run_of(0.2), run_of(0.9), run_of(0.2), run_of(0.2)]
    found = compare(*cells(PerfMode.LATENCY, base, other))["p50"]
    assert found is not None
    assert found.pairs == 3
    assert found.ratio == pytest.approx(2, rel=0.01)


def test_rates_are_compared_in_bytes() -> None:
    base, other = [run_of(1, rate=100)] * 3, [run_of(1, rate=150)] * 3
    first, second = cells(PerfMode.SUSTAINED, base, other)
    assert ratio_text(compare(first, second)["rate"]) == "1.5 times (1.49 to 1.51, 3 pairs)"
    assert "no difference shown" in ratio_text(compare(first, first)["rate"])
    larger = replace(second.cell, load=replace(second.cell.load, record_size=2000))
    found = compare(first, PerfCellResult(cell=larger, runs=other))["rate"]
    assert found is not None
    assert found.ratio == pytest.approx(3)
    assert ratio_text(None) == "not known: less than 3 pairs"


def test_second_tries_are_shown() -> None:
    report = report_of(PerfMode.DRAIN, [run_of(1)])
    report.cells[0].retried = 2
    assert "| cell-0 | 1, 2 tried again |" in perf_markdown(report)


def test_latency_document_has_percentiles_and_what_the_measurement_did() -> None:
    text = perf_markdown(report_of(PerfMode.LATENCY, [run_of(0.1)], [run_of(0.1), run_of(0.2)]))
    assert re.search(r"\| cell-0 \| 1 \| 10[45]\.\d ms \| ", text)
    assert "| cell-1 | 580 | 2 | 4 | 6 | 8 | 2.0 ms | 1.0 ms |" in text
    assert "| cell-1 | p50 | not known: less than 3 pairs |" in text


def test_document_says_which_runs_were_rejected_and_does_not_use_them() -> None:
    runs = [run_of(0.1, rate=7, problems=("the generator was late",)), run_of(0.1, rate=2000)]
    text = perf_markdown(report_of(PerfMode.SUSTAINED, runs))
    assert "| cell-0 | 1 of 2 | 2,000 | 2,000 to 2,000 | 2.0 | 50% | CPU |" in text
    assert "| cell-0 | the generator was late |" in text
    only = perf_markdown(report_of(PerfMode.SUSTAINED, runs[:1]))
    assert "| cell-0 | 0 of 1 | not known | not known |" in only


def test_page_of_one_cell_has_histogram_and_curve() -> None:
    page = perf_html(report_of(PerfMode.LATENCY, [run_of(0.1)]))
    assert page.count("<svg ") == 2
    bars = [float(each) for each in re.findall(r"<rect [^>]*height='([\d.]+)'", page)]
    assert max(bars) == 150
    assert page.count("<polyline ") == 2
    assert "nan" not in page.lower()
    assert "<svg" not in perf_html(report_of(PerfMode.LATENCY, [run_of(1)], [run_of(1)]))
