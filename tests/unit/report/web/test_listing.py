"""`/slo`: figures, filters, order, pages; errors of single objectives."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from reported import AVAILABILITY, FLOW, Minutes, objective
from serving import NOW, Sums, served

from mm2slo_core.reporting.history import MINUTE_MS, Indicator
from mm2slo_core.sli import Sli, SliKey
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from serving import Served

    from mm2slo_store import Store


def ids(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["id"] for each in found["entries"]]


def test_the_list_speaks_of_one_whole_minute_and_counts_each_status(service: Served) -> None:
    found = service.get("/slo")
    assert found["as_of"] == "2026-07-14T10:30:00Z"
    assert {each["as_of"] for each in found["entries"]} == {"2026-07-14T10:30:00Z"}
    assert (found["source"], found["time_zone"]) == ("recorder", "Europe/Berlin")
    assert found["headline"] == {
        "objectives": 3, "breached": 1, "warning": 0, "no_data": 1, "ok": 1, "idle": 0,
    }  # fmt: skip
    assert ids(found) == ["us-to-eu-availability", "eu-to-us-availability", "us-to-eu-latency-10s"]
    assert (found["total"], found["next"]) == (3, None)


def test_an_outage_of_six_minutes_in_three_days_is_in_the_figures(service: Served) -> None:
    entry = service.get("/slo")["entries"][0]
    # 3 days of 60 events a minute are 259,200; of 0.1 % of them, 259.2, six minutes took 360.
    assert entry["events"] == {
        "good": 258_840, "bad": 360, "total": 259_200, "unknown": 0, "excluded": 0,
    }  # fmt: skip
    assert entry["sli_value"] == pytest.approx(258_840 / 259_200)
    assert entry["budget"]["remaining"] == pytest.approx(1 - 360 / 259.2)
    assert entry["budget"]["remaining_events"] == pytest.approx(259.2 - 360)
    assert (entry["status"], entry["target_met"]) == ("breached", False)
    assert entry["coverage"]["ratio"] == 1.0
    assert entry["links"]["self"] == "/slo/us-to-eu-availability"


def test_what_was_never_seen_is_no_data_and_never_100_percent(service: Served) -> None:
    entry = next(each for each in service.get("/slo")["entries"] if each["status"] == "no_data")
    assert entry["id"] == "eu-to-us-availability"
    assert (entry["sli_value"], entry["target_met"], entry["budget"]["remaining"]) == (None,) * 3
    assert entry["coverage"]["known_since"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("flow=us->eu", ["us-to-eu-availability", "us-to-eu-latency-10s"]),
        ("flow=eu-to-us", ["eu-to-us-availability"]),
        ("sli=latency", ["us-to-eu-latency-10s"]),
        ("sli=latency,availability&flow=us-to-eu",
         ["us-to-eu-availability", "us-to-eu-latency-10s"]),
        ("status=ok&status=no_data", ["eu-to-us-availability", "us-to-eu-latency-10s"]),
        ("status=idle", []),
        ("sort=id", ["eu-to-us-availability", "us-to-eu-availability", "us-to-eu-latency-10s"]),
        ("sort=budget_remaining",
         ["us-to-eu-availability", "us-to-eu-latency-10s", "eu-to-us-availability"]),
        ("sort=burn_rate",
         ["us-to-eu-availability", "us-to-eu-latency-10s", "eu-to-us-availability"]),
    ],
)  # fmt: skip
def test_a_list_is_chosen_and_ordered(service: Served, query: str, expected: list[str]) -> None:
    found = service.get(f"/slo?{query}")
    assert ids(found) == expected
    assert found["headline"]["objectives"] == found["total"] == len(expected)


def test_at_a_moment_before_the_outage_the_promise_was_kept(service: Served) -> None:
    found = service.get("/slo?at=2026-07-12T10:29:31Z&flow=us->eu&sli=availability")
    (entry,) = found["entries"]
    assert found["as_of"] == "2026-07-12T10:29:00Z"
    assert (entry["events"]["bad"], entry["status"], entry["sli_value"]) == (0, "ok", 1.0)


def test_an_offset_means_the_same_instant_also_where_its_plus_became_a_space(
    service: Served,
) -> None:
    for text in ("2026-07-12T12:29:00%2B02:00", "2026-07-12T12:29:00+02:00"):
        assert service.get(f"/slo?at={text}")["as_of"] == "2026-07-12T10:29:00Z"


def test_pages_follow_each_other_without_a_gap_and_keep_their_instant(service: Served) -> None:
    found, path = [], "/slo?limit=1&sort=id"
    first = service.get(path)
    page = first
    for _ in range(3):
        found += ids(page)
        assert page["as_of"] == first["as_of"]
        if page["next"]:
            # A minute later the pages that follow still speak of the first one's instant.
            service.clock[0] += MINUTE_MS
            page = service.get(f"{path}&cursor={page['next']}")
    assert found == ["eu-to-us-availability", "us-to-eu-availability", "us-to-eu-latency-10s"]
    assert page["next"] is None


@pytest.mark.parametrize(
    "cursor", ["x", "bm9uc2Vuc2U", "W10", "WyJhIiwxXQ", "e30", "A" * 5_000, "%00", "é", "Wy" * 400]
)
def test_a_cursor_that_is_none_is_refused(service: Served, cursor: str) -> None:
    answer = service.client.get(f"/slo?cursor={cursor}")
    assert answer.status_code == 422
    assert answer.json()["parameter"] == "cursor"


def test_a_cursor_holds_for_its_question_alone(service: Served) -> None:
    following = service.get("/slo?limit=1&sort=id")["next"]
    answer = service.client.get(f"/slo?limit=1&sort=burn_rate&cursor={following}")
    assert answer.status_code == 422
    assert "another question" in answer.json()["detail"]
    assert len(service.get(f"/slo?limit=2&sort=id&cursor={following}")["entries"]) == 2


@pytest.mark.parametrize(
    ("query", "parameter", "accepted"),
    [
        ("at=yesterday", "at", "2026-07-14T10:30:00Z"),
        ("at=2026-07-14T10:30:00", "at", "2026-07-14T10:30:00Z"),
        ("at=2026-02-30T10:30:00Z", "at", "2026-07-14T10:30:00Z"),
        ("at=2027-01-01T00:00:00Z", "at", "2026-07-14T10:30:00Z"),
        ("at=0001-01-01T00:00:00%2B23:59", "at", "2026-07-14T10:30:00Z"),
        ("at=", "at", "2026-07-14T10:30:00Z"),
        ("flow=us->ue", "flow", "us->eu"),
        ("sli=avaliability", "sli", "availability"),
        ("status=fine", "status", "breached"),
        ("sort=up", "sort", "worst"),
        ("limit=0", "limit", None),
        ("limit=1001", "limit", None),
        ("limit=ten", "limit", None),
        ("perod=28d", "perod", "at"),
        ("sli=", "sli", "availability"),
        ("status=ok,", "status", "breached"),
        ("flow=", "flow", "us->eu"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_what_can(
    service: Served, query: str, parameter: str, accepted: str | None
) -> None:
    answer = service.client.get(f"/slo?{query}")
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["parameter"]) == (422, 422, parameter)
    assert answer.headers["content-type"] == "application/problem+json"
    assert accepted is None or accepted in problem["accepted"]


def test_a_misspelt_word_is_told_with_the_likely_one(service: Served) -> None:
    answer = service.client.get("/slo?sli=avaliability")
    assert "did you mean 'availability'?" in answer.json()["detail"]
    assert "did you mean 'us->eu'?" in service.client.get("/slo?flow=us->ue").json()["detail"]


def test_one_objective_that_cannot_be_read_says_so_and_hides_no_other(service: Served) -> None:
    service.source.problems[Indicator(FLOW, AVAILABILITY)] = SliSourceError("the value is NaN")
    by_id = {each["id"]: each for each in service.get("/slo")["entries"]}
    assert by_id["us-to-eu-availability"]["errors"] == ["the value is NaN"]
    assert by_id["us-to-eu-availability"]["status"] == "no_data"
    assert by_id["us-to-eu-availability"]["sli_value"] is None
    assert by_id["us-to-eu-latency-10s"]["errors"] == []
    assert by_id["us-to-eu-latency-10s"]["sli_value"] == 1.0


@pytest.mark.parametrize(("slow", "status"), [(False, 502), (True, 504)])
def test_a_source_that_is_down_or_slow_is_told_by_each_entry_and_makes_no_figure(
    service: Served, *, slow: bool, status: int
) -> None:
    told = "Prometheus does not answer"
    service.source.down = SliSourceError(told, slow=slow)
    for path in ("/slo", "/slo/report", "/slo/report?period=2026-07", "/flows/us-to-eu"):
        entries = service.get(path)["entries"]
        assert len(entries) == (2 if "/flows/" in path else 3)
        for each in entries:
            assert (each["status"], each["errors"]) == ("no_data", [told])
            assert (each["sli_value"], each["budget"]["remaining"]) == (None, None)
            assert (each["coverage"]["known_since"], each["target_met"]) == (None, None)
    assert {each["status"] for each in service.get("/flows")["flows"]} == {"no_data"}
    for path in ("/", "/slo/report?format=html", "/slo/report?format=md"):
        text = service.client.get(path).text
        assert told in text
        # Definitions aside.
        assert "100 %" not in text.replace("100 % minus", "")
    rows = list(csv.DictReader(io.StringIO(service.client.get("/slo/report?format=csv").text)))
    assert [(each["sli_value"], each["errors"]) for each in rows] == [("", told)] * 3
    assert service.get("/slo/us-to-eu-availability/alerts")["errors"] == [told]
    # What is asked of one objective alone has no other answer.
    for path in ("", "/history"):
        answer = service.client.get(f"/slo/us-to-eu-availability{path}")
        assert (answer.status_code, answer.json()["detail"]) == (status, told)


def test_warnings_of_the_source_are_told(service: Served) -> None:
    service.source.told = ("retention is 15d, less than 28d",)
    assert service.get("/slo")["warnings"] == ["retention is 15d, less than 28d"]


def test_a_hundred_entries_are_a_page_and_no_flow_is_twice(store: Store) -> None:
    keys = [SliKey(Sli.LATENCY, f"{number}s") for number in range(1, 151)]
    many = served(store, objectives=tuple(objective(0.99, key=key) for key in keys))
    for key in keys:
        many.source.history[Indicator(FLOW, key)] = Sums(Minutes())
    first = many.get("/slo")
    second = many.get(f"/slo?cursor={first['next']}")
    assert (len(first["entries"]), len(second["entries"]), second["next"]) == (100, 50, None)
    assert len({*ids(first), *ids(second)}) == 150


def test_nothing_is_a_list_too(store: Store) -> None:
    found = served(store, objectives=()).get("/slo")
    assert (found["entries"], found["total"], found["next"]) == ([], 0, None)


def test_now_moves_with_the_clock(service: Served) -> None:
    service.clock[0] = NOW + 3 * MINUTE_MS
    assert service.get("/slo")["as_of"] == "2026-07-14T10:33:00Z"
