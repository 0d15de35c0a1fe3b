"""Points and time ranges of queries, which determine their cost."""

from typing import Any

from generated_dashboards import all_panels

TIME_SERIES = {"timeseries", "state-timeline"}
ALL_FLOWS = {"mm2slo-overview", "mm2slo-failover", "mm2slo-slo"}


def panels_with(key: str) -> dict[tuple[str, str], Any]:
    return {(uid, each["title"]): each[key] for uid, each in all_panels() if key in each}


def test_time_series_of_all_flows_have_300_points() -> None:
    assert panels_with("maxDataPoints") == {
        (uid, panel["title"]): 300
        for uid, panel in all_panels()
        if uid in ALL_FLOWS and panel["type"] in TIME_SERIES
    }


def test_queries_of_every_group_and_sums_of_steps_have_five_minute_interval() -> None:
    assert panels_with("interval") == {
        ("mm2slo-failover", "Blocked groups over time"): "5m",
        ("mm2slo-slo", "Bad events"): "5m",
        ("mm2slo-slo", "Burn rate by window pair"): "5m",
        ("mm2slo-slo", "Events by outcome"): "5m",
    }


def test_short_windows_have_their_own_time_range() -> None:
    assert panels_with("timeFrom") == {("mm2slo-slo", "Burn rate by window pair"): "6h"}
