"""Sentences of a report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rendered import sample_entries, sample_report

from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.entry import Comparison
from mm2slo_report.rendering import lines
from mm2slo_report.rendering.tones import flow_tone, flow_words

REPORT = sample_report()


def of(*statuses: Status) -> str:
    entry = sample_entries()[0]
    found = tuple(replace(entry, status=each) for each in statuses)
    return lines.verdict(replace(REPORT, entries=found))


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ((), "There are no objectives to report on"),
        ((Status.OK,), "The one objective is within budget"),
        ((Status.OK, Status.OK), "All 2 objectives are within budget"),
        ((Status.OK, Status.IDLE), "1 of 2 objectives is within budget, 1 is idle"),
        ((Status.IDLE, Status.IDLE), "All 2 objectives are idle"),
        ((Status.OK, Status.NO_DATA), "Nothing is known of 1 of 2 objectives"),
        ((Status.WARNING, Status.NO_DATA), "1 of 2 objectives needs care"),
        ((Status.WARNING, Status.BREACHED, Status.BREACHED), "2 of 3 objectives are breached"),
    ],
)
def test_the_verdict_names_the_worst_there_is(statuses: tuple[Status, ...], text: str) -> None:
    assert of(*statuses) == text


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(1.0, "99.95 %"), (0.9, "99.95 %"), (0.25, "99.95 % (25 % known)"), (None, "99.95 %")],
)
def test_the_period_before_is_told_with_what_is_known_of_it(
    coverage: float | None, text: str
) -> None:
    before = Comparison(start=0, end=1, ratio=0.9995, remaining=0.5, coverage=coverage)
    assert lines.trend(replace(sample_entries()[0], before=before)) == text


def test_states_are_counted_worst_first() -> None:
    assert lines.counted_states(REPORT) == "1 breached, 4 warning, 1 no data, 1 ok, 1 idle"


def test_what_is_left_of_a_budget() -> None:
    entries = {each.id: each for each in sample_entries()}
    assert lines.budget_left(entries["us-to-eu-latency-10s"]) == "26.8 % (about 1.8 h)"
    assert lines.budget_time(entries["us-to-eu-availability"]) == "overspent by about 4.3 h"
    assert lines.budget_left(entries["eu-to-us-checkpoint-freshness"]) == "n/a"
    assert lines.runs_out(entries["us-to-eu-availability"]) == "used up"
    assert lines.runs_out(entries["us-to-eu-completeness"]) == "not burning"
    assert lines.runs_out(entries["eu-to-us-latency-10s"]).startswith("in ")
    # Nothing is known of its last hour: whether it burns, either.
    assert lines.runs_out(entries["us-to-ap-latency-10s"]) == "n/a"
    assert lines.why(entries["eu-to-us-availability"]).endswith("(fast)")


@pytest.mark.parametrize(
    ("state", "worst", "tone", "words"),
    [
        ("running", Status.OK, Status.OK, "running"),
        ("running", Status.BREACHED, Status.BREACHED, "running, breached"),
        ("idle", Status.IDLE, Status.IDLE, "idle"),
        ("stopped", Status.OK, Status.BREACHED, "stopped"),
        ("stopped", None, Status.BREACHED, "stopped"),
        ("unknown", Status.OK, Status.NO_DATA, "unknown"),
        ("unknown", Status.WARNING, Status.WARNING, "unknown, warning"),
        (None, Status.NO_DATA, Status.NO_DATA, "no data"),
        (None, None, Status.NO_DATA, "not known"),
        ("running", None, Status.OK, "running"),
    ],
)
def test_a_flow_is_told_by_its_state_and_its_worst_promise(
    state: str | None, worst: Status | None, tone: Status, words: str
) -> None:
    assert (flow_tone(state, worst), flow_words(state, worst)) == (tone, words)
