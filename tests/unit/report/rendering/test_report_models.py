"""Entries, details and reports as typed responses."""

import json
from dataclasses import replace
from typing import Any

import pytest
from sample_report import NOW, WEST, sample_details, sample_entries, sample_report

from mm2slo_core.indicators.sli_counters import SliKey
from mm2slo_core.reporting.report_entry import Entry
from mm2slo_core.reporting.slo_report import Report
from mm2slo_report.rendering import report_models
from mm2slo_report.service_settings import References

ENTRIES = {each.id: each for each in sample_entries()}
FIELDS = {
    "id", "flow", "sli", "objective_ratio", "window", "as_of", "status", "status_reason",
    "status_pair", "is_current", "stale_since",
    "sli_ratio", "events", "budget", "burn_rate", "time_to_exhaustion_seconds",
    "projected_remaining_ratio", "alerts", "coverage", "trend_vs_previous_window", "audit", "owner",
    "links", "spec_hash", "warnings", "errors",
}  # fmt: skip


def entry_document(entry: Entry, references: References = report_models.NO_REFERENCES) -> Any:
    return json.loads(report_models.ObjectiveEntry.of(entry, references).model_dump_json())


def report_document(report: Report) -> Any:
    return json.loads(report_models.ObjectiveList.of(report).model_dump_json())


def test_entry_of_breached_objective() -> None:
    found = entry_document(ENTRIES["us-to-eu-availability"])
    assert set(found) == FIELDS
    assert found["flow"] == {"name": "us->eu", "slug": "us-to-eu", "source": "us", "target": "eu"}
    assert found["window"] == {
        "name": "28d",
        "kind": "rolling",
        "duration_seconds": 2_419_200.0,
        "start": "2026-06-16T10:30:00Z",
        "end": "2026-07-14T10:30:00Z",
    }
    assert found["as_of"] == "2026-07-14T10:30:00Z"
    assert (found["status"], found["status_reason"]) == ("breached", "error budget exhausted")
    bad, total = (35 + 260) * 60, 28 * 1440 * 60
    assert found["events"] == {
        "good": total - bad, "bad": bad, "total": total, "unknown": 0, "excluded": 0,
    }  # fmt: skip
    assert found["sli_ratio"] == (total - bad) / total
    assert (found["is_current"], found["stale_since"]) == (True, None)
    # 0.1 % of 28 days are 40.32 minutes; 295 were bad. Not clamped.
    assert found["budget"]["allowed_error_ratio"] == 0.001
    assert found["budget"]["total_seconds"] == 2419.2
    assert found["budget"]["remaining_seconds"] == pytest.approx((40.32 - 295) * 60)
    assert found["budget"]["remaining_ratio"] == pytest.approx(1 - 295 / 40.32)
    assert found["budget"]["is_estimate"] is True
    assert list(found["burn_rate"]) == ["5m", "1h", "2h", "6h", "1d", "3d"]
    assert found["time_to_exhaustion_seconds"] == 0
    assert found["trend_vs_previous_window"]["sli_ratio"] == 1
    assert found["trend_vs_previous_window"]["sli_ratio_change"] == pytest.approx(-bad / total)
    assert found["audit"]["faults"] == {"lost": 2}
    assert found["audit"]["audited_up_to"] == "2026-07-14T00:30:00Z"
    assert found["coverage"]["ratio"] == 1
    assert found["coverage"]["samples"] == found["coverage"]["expected_samples"] == 28 * 1440


def test_unknown_values_are_null() -> None:
    found = entry_document(ENTRIES["eu-to-us-checkpoint-freshness"])
    assert found["status"] == "idle"
    for name in ("sli_ratio", "stale_since", "time_to_exhaustion_seconds", "audit", "owner"):
        assert found[name] is None, name
    assert found["budget"]["remaining_ratio"] is None
    assert found["budget"]["remaining_seconds"] is None
    assert set(found["burn_rate"].values()) == {None}
    assert found["trend_vs_previous_window"] is None


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinities_are_null(odd: float) -> None:
    entry: Entry = next(iter(ENTRIES.values()))
    changed = replace(
        entry,
        ratio=odd,
        exhaustion_seconds=odd,
        projected_remaining=odd,
        counts=replace(entry.counts, total=odd, good=odd, unknown=odd),
        budget=replace(
            entry.budget, remaining=odd, consumed=odd, total_events=odd, remaining_minutes=odd
        ),
        burn_rates=dict.fromkeys(entry.burn_rates, odd),
    )
    found = entry_document(changed)
    assert (
        found["sli_ratio"] is found["events"]["total"] is found["budget"]["consumed_ratio"] is None
    )
    assert found["budget"]["remaining_seconds"] is None


def test_whole_counts_are_integers() -> None:
    entry = ENTRIES["us-to-eu-availability"]
    halved = replace(entry, counts=replace(entry.counts, good=10.5, total=12.0))
    events = entry_document(halved)["events"]
    assert (events["good"], events["bad"]) == (10.5, 1.5)
    assert isinstance(events["total"], int)


def test_latency_threshold_is_in_seconds() -> None:
    found = entry_document(ENTRIES["eu-to-us-latency-10s"])["sli"]
    assert (found["type"], found["tier"], found["threshold_seconds"]) == ("latency", "10s", 10.0)
    assert found["name"] == "latency within 10s"
    assert entry_document(ENTRIES["eu-to-us-availability"])["sli"]["threshold_seconds"] is None


def test_spec_hash_depends_only_on_the_objective() -> None:
    entry = ENTRIES["us-to-eu-availability"]
    same = replace(entry, as_of=NOW + 60_000, objective=replace(entry.objective, owner="streams"))
    other = replace(entry, objective=replace(entry.objective, target=0.99))
    first = entry_document(entry)["spec_hash"]
    assert entry_document(same)["spec_hash"] == first
    assert entry_document(other)["spec_hash"] != first


def test_entry_links_contain_known_references() -> None:
    entry = ENTRIES["us-to-eu-availability"]
    known = References(
        service="https://slo.example.test",
        dashboard="https://grafana.example.test",
    )
    found = entry_document(entry, known)
    assert found["links"] == {
        "self": "https://slo.example.test/slo/us-to-eu-availability",
        "dashboard": "https://grafana.example.test",
        "runbook": None,
        "prometheus": None,
    }
    assert entry_document(entry, References(service=None))["links"]["self"] is None


def test_report_has_headline_and_worst_entry_first() -> None:
    found = report_document(sample_report())
    assert found["headline"] == {
        "objectives": 8, "breached": 1, "at_risk": 4, "no_data": 1, "met": 1, "idle": 1, "stale": 0,
    }  # fmt: skip
    assert found["entries"][0]["status"] == "breached"
    assert found["entries"][-1]["status"] == "idle"
    assert found["window"] is None
    assert found["source"] == "recorder"


def test_detail_has_days_and_incidents() -> None:
    (detail,) = (
        each
        for each in sample_details()
        if each.entry.objective.flow == WEST
        and each.entry.objective.key == SliKey(each.entry.objective.key.sli)
    )
    found = json.loads(report_models.ObjectiveDetail.of(detail).model_dump_json())
    assert len(found["days"]) == 29
    assert sum(each["bad_events"] for each in found["days"]) == 295 * 60
    assert [each["duration_seconds"] for each in found["incidents"]] == [260 * 60, 35 * 60]
    assert found["incidents"][0]["consumed_ratio"] == pytest.approx(260 / 40.32)
    assert found["incidents"][0]["start"] == "2026-07-05T03:18:00Z"
