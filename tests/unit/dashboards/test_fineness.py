"""How many points courses ask for, and of which time: what decides on the cost of a query."""

from __future__ import annotations

from typing import Any

from dashed import every_panel

COURSES = {"timeseries", "state-timeline", "heatmap"}
OF_ALL_FLOWS = {"mm2slo-overview", "mm2slo-failover", "mm2slo-slo"}


def having(key: str) -> dict[tuple[str, str], Any]:
    return {(uid, each["title"]): each[key] for uid, each in every_panel() if key in each}


def test_courses_of_all_flows_have_three_hundred_points() -> None:
    assert having("maxDataPoints") == {
        (uid, panel["title"]): 300
        for uid, panel in every_panel()
        if uid in OF_ALL_FLOWS and panel["type"] in COURSES
    }


def test_what_there_is_of_every_group_is_asked_every_five_minutes_at_most() -> None:
    assert having("interval") == {("mm2slo-failover", "Since when are groups not ready?"): "5m"}


def test_pairs_of_short_windows_show_a_time_of_their_own() -> None:
    assert having("timeFrom") == {
        ("mm2slo-slo", "Does the fast pair burn?"): "1d",
        ("mm2slo-slo", "Does the steady pair burn?"): "3d",
    }
