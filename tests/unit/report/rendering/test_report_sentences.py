"""Sentences of reports."""

from dataclasses import replace

import pytest
from sample_report import sample_entries, sample_report

from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.reporting.report_entry import PeriodComparison
from mm2slo_report.rendering import report_text
from mm2slo_report.rendering.report_html import flow_display_status, flow_text

REPORT = sample_report()


def verdict_of(*statuses: Status) -> str:
    entry = sample_entries()[0]
    found = tuple(replace(entry, status=each) for each in statuses)
    return report_text.verdict_text(replace(REPORT, entries=found))


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ((), "No objectives are configured"),
        ((Status.MET,), "The objective is met"),
        ((Status.MET, Status.MET), "All 2 objectives are met"),
        ((Status.MET, Status.IDLE), "1 of 2 objectives is met, 1 is idle"),
        ((Status.IDLE, Status.IDLE), "All 2 objectives are idle"),
        ((Status.MET, Status.NO_DATA), "No data for 1 of 2 objectives"),
        ((Status.AT_RISK, Status.NO_DATA), "1 of 2 objectives is at risk"),
        ((Status.AT_RISK, Status.BREACHED, Status.BREACHED), "2 of 3 objectives are breached"),
    ],
)
def test_verdict_names_worst_status(statuses: tuple[Status, ...], text: str) -> None:
    assert verdict_of(*statuses) == text


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(1.0, "99.95 %"), (0.9, "99.95 %"), (0.25, "99.95 % (coverage 25 %)"), (None, "99.95 %")],
)
def test_trend_shows_low_coverage(coverage: float | None, text: str) -> None:
    before = PeriodComparison(start=0, end=1, ratio=0.9995, remaining=0.5, coverage=coverage)
    assert report_text.trend_text(replace(sample_entries()[0], before=before)) == text


def test_status_counts_are_sorted_worst_first() -> None:
    assert report_text.status_counts(REPORT) == "1 breached, 4 at risk, 1 no data, 1 met, 1 idle"


def test_remaining_budget_texts() -> None:
    entries = {each.id: each for each in sample_entries()}
    assert report_text.budget_left(entries["us-to-eu-latency-10s"]) == "26.8 % (about 1.8 h)"
    assert report_text.budget_time(entries["us-to-eu-availability"]) == "overspent by about 4.3 h"
    assert report_text.budget_left(entries["eu-to-us-checkpoint-freshness"]) == "n/a"
    assert report_text.exhaustion_text(entries["us-to-eu-availability"]) == "exhausted"
    assert report_text.exhaustion_text(entries["us-to-eu-completeness"]) == "not burning"
    assert report_text.exhaustion_text(entries["eu-to-us-latency-10s"]).startswith("in ")
    # Unknown without data of the last hour.
    assert report_text.exhaustion_text(entries["us-to-ap-latency-10s"]) == "n/a"
    assert report_text.reason_text(entries["eu-to-us-availability"]).endswith("(fast)")


@pytest.mark.parametrize(
    ("state", "worst", "displayed", "text"),
    [
        ("running", Status.MET, Status.MET, "running"),
        ("running", Status.BREACHED, Status.BREACHED, "running, breached"),
        ("idle", Status.IDLE, Status.IDLE, "idle"),
        ("stopped", Status.MET, Status.BREACHED, "stopped"),
        ("stopped", None, Status.BREACHED, "stopped"),
        ("unknown", Status.MET, Status.NO_DATA, "unknown"),
        ("unknown", Status.AT_RISK, Status.AT_RISK, "unknown, at risk"),
        (None, Status.NO_DATA, Status.NO_DATA, "no data"),
        (None, None, Status.NO_DATA, "unknown"),
        ("running", None, Status.MET, "running"),
    ],
)
def test_flow_display_combines_state_and_worst_status(
    state: str | None, worst: Status | None, displayed: Status, text: str
) -> None:
    assert (flow_display_status(state, worst), flow_text(state, worst)) == (displayed, text)
