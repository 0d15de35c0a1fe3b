"""`/slo`: values, filters, order, pages and errors of single objectives."""

import csv
import io

import pytest
from minute_history import AVAILABILITY, FLOW, Minutes, objective
from report_service_fixture import NOW, ServiceFixture, Sums, start_service

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.store import Store


def ids(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["id"] for each in found["entries"]]


def test_list_is_as_of_whole_minute_and_counts_statuses(service: ServiceFixture) -> None:
    found = service.get("/slo")
    assert found["as_of"] == "2026-07-14T10:30:00Z"
    assert {each["as_of"] for each in found["entries"]} == {"2026-07-14T10:30:00Z"}
    assert (found["source"], found["time_zone"]) == ("recorder", "Europe/Berlin")
    assert found["headline"] == {
        "objectives": 3, "breached": 1, "at_risk": 0, "no_data": 1, "met": 1, "idle": 0, "stale": 0,
    }  # fmt: skip
    assert ids(found) == ["us-to-eu-availability", "eu-to-us-availability", "us-to-eu-latency-10s"]
    assert (found["total"], found["next"]) == (3, None)


def test_list_entry_contains_counts_of_six_minute_outage(service: ServiceFixture) -> None:
    entry = service.get("/slo")["entries"][0]
    # 3 days of 60 events a minute are 259,200; 0.1 % of them are 259.2; six minutes are 360.
    assert entry["events"] == {
        "good": 258_840, "bad": 360, "total": 259_200, "unknown": 0, "excluded": 0,
    }  # fmt: skip
    assert entry["sli_ratio"] == pytest.approx(258_840 / 259_200)
    assert entry["budget"]["remaining_ratio"] == pytest.approx(1 - 360 / 259.2)
    assert entry["budget"]["remaining_events"] == pytest.approx(259.2 - 360)
    assert (entry["status"], entry["is_current"], entry["stale_since"]) == ("breached", True, None)
    assert entry["coverage"]["ratio"] == 1.0
    assert entry["links"]["self"] == "/slo/us-to-eu-availability"


def test_unseen_indicator_has_no_data_and_null_values(service: ServiceFixture) -> None:
    entry = next(each for each in service.get("/slo")["entries"] if each["status"] == "no_data")
    assert entry["id"] == "eu-to-us-availability"
    assert (entry["sli_ratio"], entry["stale_since"], entry["budget"]["remaining_ratio"]) == (
        None,
    ) * 3
    assert entry["coverage"]["known_since"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("flow=us->eu", ["us-to-eu-availability", "us-to-eu-latency-10s"]),
        ("flow=eu-to-us", ["eu-to-us-availability"]),
        ("sli=latency", ["us-to-eu-latency-10s"]),
        ("sli=latency,availability&flow=us-to-eu",
         ["us-to-eu-availability", "us-to-eu-latency-10s"]),
        ("status=met&status=no_data", ["eu-to-us-availability", "us-to-eu-latency-10s"]),
        ("status=idle", []),
        ("sort=id", ["eu-to-us-availability", "us-to-eu-availability", "us-to-eu-latency-10s"]),
        ("sort=budget_remaining",
         ["us-to-eu-availability", "us-to-eu-latency-10s", "eu-to-us-availability"]),
        ("sort=burn_rate",
         ["us-to-eu-availability", "us-to-eu-latency-10s", "eu-to-us-availability"]),
    ],
)  # fmt: skip
def test_list_is_filtered_and_sorted(
    service: ServiceFixture, query: str, expected: list[str]
) -> None:
    found = service.get(f"/slo?{query}")
    assert ids(found) == expected
    assert found["headline"]["objectives"] == found["total"] == len(expected)


def test_list_over_a_period_has_its_figures(service: ServiceFixture) -> None:
    found = service.get("/slo?period=2026-07-12&limit=2")
    assert (found["window"]["name"], found["total"]) == ("2026-07-12", 3)
    entry = found["entries"][0]
    assert (entry["events"]["bad"], entry["events"]["total"]) == (360, 86_400)
    rest = service.get(f"/slo?period=2026-07-12&limit=2&cursor={found['next']}")
    assert [each["window"]["name"] for each in rest["entries"]] == ["2026-07-12"]
    assert service.client.get("/slo?period=2027").status_code == 422


def test_list_at_instant_before_outage_meets_objective(service: ServiceFixture) -> None:
    found = service.get("/slo?at=2026-07-12T10:29:31Z&flow=us->eu&sli=availability")
    (entry,) = found["entries"]
    assert found["as_of"] == "2026-07-12T10:29:00Z"
    assert (entry["events"]["bad"], entry["status"], entry["sli_ratio"]) == (0, "met", 1.0)


def test_utc_offset_with_unescaped_plus_is_accepted(
    service: ServiceFixture,
) -> None:
    for text in ("2026-07-12T12:29:00%2B02:00", "2026-07-12T12:29:00+02:00"):
        assert service.get(f"/slo?at={text}")["as_of"] == "2026-07-12T10:29:00Z"


def test_list_pages_have_no_gaps_and_share_one_instant(service: ServiceFixture) -> None:
    found, path = [], "/slo?limit=1&sort=id"
    first = service.get(path)
    page = first
    for _ in range(3):
        found += ids(page)
        assert page["as_of"] == first["as_of"]
        if page["next"]:
            # Later pages keep the instant of the first page.
            service.clock[0] += MINUTE_MS
            page = service.get(f"{path}&cursor={page['next']}")
    assert found == ["eu-to-us-availability", "us-to-eu-availability", "us-to-eu-latency-10s"]
    assert page["next"] is None


@pytest.mark.parametrize(
    "cursor", ["x", "bm9uc2Vuc2U", "W10", "WyJhIiwxXQ", "e30", "A" * 5_000, "%00", "é", "Wy" * 400]
)
def test_invalid_cursor_is_rejected(service: ServiceFixture, cursor: str) -> None:
    response = service.client.get(f"/slo?cursor={cursor}")
    assert response.status_code == 422
    assert response.json()["parameter"] == "cursor"


def test_cursor_of_other_query_is_rejected(service: ServiceFixture) -> None:
    following = service.get("/slo?limit=1&sort=id")["next"]
    response = service.client.get(f"/slo?limit=1&sort=burn_rate&cursor={following}")
    assert response.status_code == 422
    assert "another query" in response.json()["detail"]
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
        ("limit=0", "limit", "1"),
        ("limit=1001", "limit", "1000"),
        ("limit=ten", "limit", "1"),
        ("perod=28d", "perod", "at"),
        ("sli=", "sli", "availability"),
        ("status=met,", "status", "breached"),
        ("flow=", "flow", "us->eu"),
    ],
)
def test_invalid_parameter_is_rejected_with_accepted_values(
    service: ServiceFixture, query: str, parameter: str, accepted: str
) -> None:
    response = service.client.get(f"/slo?{query}")
    problem = response.json()
    assert (response.status_code, problem["status"], problem["parameter"]) == (422, 422, parameter)
    assert response.headers["content-type"] == "application/problem+json"
    assert accepted in problem["accepted"]


def test_repeated_parameter_is_rejected_unless_it_is_a_list(service: ServiceFixture) -> None:
    for query in ("at=2026-07-01T00:00:00Z&at=2026-07-02T00:00:00Z", "period=1d&period=2d"):
        response = service.client.get(f"/slo?{query}")
        name = query.partition("=")[0]
        assert (response.status_code, response.json()["parameter"]) == (422, name)
        assert f"{name} is given 2 times" in response.text
    assert service.client.get("/slo?flow=us->eu&flow=eu->us").status_code == 200


def test_misspelt_value_gets_a_suggestion(service: ServiceFixture) -> None:
    response = service.client.get("/slo?sli=avaliability")
    assert "did you mean 'availability'?" in response.json()["detail"]
    assert "did you mean 'us->eu'?" in service.client.get("/slo?flow=us->ue").json()["detail"]


def test_error_of_one_objective_does_not_affect_others(service: ServiceFixture) -> None:
    service.source.problems[Indicator(FLOW, AVAILABILITY)] = SliSourceError("the value is NaN")
    by_id = {each["id"]: each for each in service.get("/slo")["entries"]}
    assert by_id["us-to-eu-availability"]["errors"] == ["the value is NaN"]
    assert by_id["us-to-eu-availability"]["status"] == "no_data"
    assert by_id["us-to-eu-availability"]["sli_ratio"] is None
    assert by_id["us-to-eu-latency-10s"]["errors"] == []
    assert by_id["us-to-eu-latency-10s"]["sli_ratio"] == 1.0


@pytest.mark.parametrize(("slow", "status"), [(False, 502), (True, 504)])
def test_failing_source_sets_errors_and_null_values_in_entries(
    service: ServiceFixture, *, slow: bool, status: int
) -> None:
    message = "Prometheus did not respond"
    service.source.down = SliSourceError(message, slow=slow)
    for path in ("/slo", "/slo/report", "/slo/report?period=2026-07", "/flows/us-to-eu"):
        entries = service.get(path)["entries"]
        assert len(entries) == (2 if "/flows/" in path else 3)
        for each in entries:
            assert (each["status"], each["errors"]) == ("no_data", [message])
            assert (each["sli_ratio"], each["budget"]["remaining_ratio"]) == (None, None)
            assert (each["coverage"]["known_since"], each["is_current"]) == (None, False)
    assert {each["status"] for each in service.get("/flows")["flows"]} == {"no_data"}
    for path in ("/", "/slo/report?format=html", "/slo/report?format=md"):
        text = service.client.get(path).text
        assert message in text
        # Except in the definitions.
        assert "100 %" not in text.replace("100 % minus", "")
    rows = list(csv.DictReader(io.StringIO(service.client.get("/slo/report?format=csv").text)))
    assert [(each["sli_ratio"], each["errors"]) for each in rows] == [("", message)] * 3
    assert service.get("/slo/us-to-eu-availability/alerts")["errors"] == [message]
    # Requests for a single objective fail.
    for path in ("", "/history"):
        response = service.client.get(f"/slo/us-to-eu-availability{path}")
        assert (response.status_code, response.json()["detail"]) == (status, message)


def test_warnings_of_source_are_listed(service: ServiceFixture) -> None:
    service.source.source_warnings = ("retention is 15d, less than 28d",)
    assert service.get("/slo")["warnings"] == ["retention is 15d, less than 28d"]


def test_default_page_has_100_entries_without_duplicates(store: Store) -> None:
    keys = [SliKey(Sli.LATENCY, f"{number}s") for number in range(1, 151)]
    many = start_service(store, objectives=tuple(objective(0.99, key=key) for key in keys))
    for key in keys:
        many.source.history[Indicator(FLOW, key)] = Sums(Minutes())
    first = many.get("/slo")
    second = many.get(f"/slo?cursor={first['next']}")
    assert (len(first["entries"]), len(second["entries"]), second["next"]) == (100, 50, None)
    assert len({*ids(first), *ids(second)}) == 150


def test_list_without_objectives_is_empty(store: Store) -> None:
    found = start_service(store, objectives=()).get("/slo")
    assert (found["entries"], found["total"], found["next"]) == ([], 0, None)


def test_as_of_follows_the_clock(service: ServiceFixture) -> None:
    service.clock[0] = NOW + 3 * MINUTE_MS
    assert service.get("/slo")["as_of"] == "2026-07-14T10:33:00Z"
