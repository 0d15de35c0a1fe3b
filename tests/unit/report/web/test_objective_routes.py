"""`/slo/{id}` with details, history, window pairs and definition."""

import pytest
import yaml
from minute_history import AVAILABILITY, DAY_MS, FLOW, objective
from report_service_fixture import AS_OF, OUTAGE, ServiceFixture, start_service

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import slo_id
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_core.topology import Flow
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.store import Store

SLO = "/slo/us-to-eu-availability"


def test_objective_detail_lists_incidents_and_days(service: ServiceFixture) -> None:
    found = service.get(SLO)
    assert found["entry"]["id"] == "us-to-eu-availability"
    assert found["incidents"] == [
        {
            "start": utc_text(OUTAGE),
            "end": utc_text(OUTAGE + 6 * MINUTE_MS),
            "duration_seconds": 360.0,
            "bad_events": 360,
            "consumed_ratio": pytest.approx(360 / 259.2),
            "equivalent_minutes": pytest.approx(6.0),
        }
    ]
    assert [each["bad_events"] for each in found["days"]] == [0, 360, 0, 0]
    # Days start at midnight in Berlin, which is 22:00 in UTC in summer.
    assert found["days"][1]["start"] == "2026-07-11T22:00:00Z"


def test_browser_gets_a_page_and_client_gets_json(service: ServiceFixture) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    page = service.client.get(f"{SLO}?period=2026-07-12", headers=browser)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert 'data-slo="us-to-eu-availability"' in page.text
    assert "us-to-eu-latency-10s" not in page.text
    assert "Content-Security-Policy" in page.headers
    for accept in ("*/*", "application/json", ""):
        answer = service.client.get(SLO, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert "Accept" in answer.headers["vary"]
    unknown = service.client.get("/slo/us-to-eu-availabilty", headers=browser)
    assert unknown.status_code == 404


def test_calendar_period_uses_configured_time_zone(service: ServiceFixture) -> None:
    entry = service.get(f"{SLO}?period=2026-07-12")["entry"]
    assert entry["window"] == {
        "name": "2026-07-12", "kind": "calendar", "duration_seconds": 86_400.0,
        "start": "2026-07-11T22:00:00Z", "end": "2026-07-12T22:00:00Z",
    }  # fmt: skip
    assert (entry["events"]["bad"], entry["events"]["total"]) == (360, 86_400)


def test_period_before_first_data_has_zero_coverage(service: ServiceFixture) -> None:
    entry = service.get(f"{SLO}?period=2026-06")["entry"]
    assert entry["coverage"]["ratio"] == 0.0
    assert (entry["sli_ratio"], entry["status"]) == (None, "no_data")


def test_unknown_objective_id_returns_404_with_suggestion(service: ServiceFixture) -> None:
    for path in ("", "/history", "/alerts", "/spec"):
        response = service.client.get(f"/slo/us-to-eu-availabilty{path}")
        problem = response.json()
        assert response.status_code == 404
        assert problem["type"] == "urn:mm2slo:problem:not-found"
        assert problem["near"][0] == "us-to-eu-availability"
        assert "did you mean 'us-to-eu-availability'?" in problem["detail"]


@pytest.mark.parametrize(
    "period",
    [
        "July",
        "2026-13",
        "2027",
        "0d",
        "9999d",
        "",
        "2026-7",
        "-1d",
        "9" * 400 + "d",
        "9" * 5_000 + "d",
    ],
)
def test_invalid_period_is_rejected_with_examples(service: ServiceFixture, period: str) -> None:
    for path in (SLO, "/slo/report"):
        response = service.client.get(f"{path}?period={period}")
        assert (response.status_code, response.json()["parameter"]) == (422, "period")
        assert response.json()["accepted"] == [
            "28d", "2026", "2026-Q3", "2026-07", "2026-W30", "2026-07-14",
        ]  # fmt: skip


def test_history_points_have_counts_and_remaining_budget(service: ServiceFixture) -> None:
    start, end = utc_text(OUTAGE - 60 * MINUTE_MS), utc_text(OUTAGE + 90 * MINUTE_MS)
    found = service.get(f"{SLO}/history?from={start}&to={end}&step=1h")
    assert (found["start"], found["end"], found["step_seconds"]) == (start, end, 3600)
    points = found["points"]
    assert [(each["bad"], each["total"], each["samples"]) for each in points] == [
        (0, 3_600, 60), (360, 3_600, 60), (0, 1_800, 30),
    ]  # fmt: skip
    assert [each["sli_ratio"] for each in points] == [1.0, 0.9, 1.0]
    assert points[1]["burn_rate"] == pytest.approx(100.0)
    # 9,000 events allow 9 bad events.
    assert [each["remaining_ratio"] for each in points] == pytest.approx([1.0, 1 - 40, 1 - 40])


def test_history_default_is_window_in_30m_steps(service: ServiceFixture) -> None:
    found = service.get(f"{SLO}/history")
    assert (found["start"], found["end"]) == (utc_text(AS_OF - 3 * DAY_MS), utc_text(AS_OF))
    assert found["step_seconds"] == 1800
    assert len(found["points"]) == 144
    assert sum(each["bad"] for each in found["points"]) == 360


def test_history_without_events_has_null_values(service: ServiceFixture) -> None:
    found = service.get("/slo/eu-to-us-availability/history?step=1d")
    assert [each["sli_ratio"] for each in found["points"]] == [None] * 3
    assert [each["remaining_ratio"] for each in found["points"]] == [None] * 3
    assert [each["samples"] for each in found["points"]] == [0, 0, 0]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("step=1m", "step"),  # 4,320 steps
        (f"step={'9' * 5_000}d", "step"),
        ("step=90s", "step"),
        ("step=0m", "step"),
        ("from=2026-07-14T10:20:00Z&to=2026-07-14T10:20:59Z", "from"),
        ("from=2026-07-14T10:00:00Z&to=2026-07-13T10:00:00Z", "from"),
        ("from=2025-07-14T10:00:00Z", "from"),
        ("to=2026-08-14T10:00:00Z", "to"),
        ("to=1970-01-01T00:00:00Z", "from"),
        ("from=1h", "from"),
    ],
)
def test_invalid_history_parameters_are_rejected(
    service: ServiceFixture, query: str, parameter: str
) -> None:
    response = service.client.get(f"{SLO}/history?{query}")
    assert (response.status_code, response.json()["parameter"]) == (422, parameter)


def test_source_error_of_one_objective_returns_504(service: ServiceFixture) -> None:
    service.source.problems[Indicator(FLOW, AVAILABILITY)] = SliSourceError(
        "no response", slow=True
    )
    assert service.client.get(SLO).status_code == 504
    assert service.client.get(f"{SLO}/history").status_code == 504
    assert service.client.get("/slo/us-to-eu-latency-10s").status_code == 200


def test_alerts_show_burn_rates_factor_and_state_of_pairs(service: ServiceFixture) -> None:
    during = utc_text(OUTAGE + 6 * MINUTE_MS)
    pairs = {each["name"]: each for each in service.get(f"{SLO}/alerts?at={during}")["pairs"]}
    assert list(pairs) == ["fast", "steady", "slow", "creeping"]
    fast = pairs["fast"]
    # Six of the last sixty minutes were bad, and all of the last five.
    assert (fast["long_burn_rate"], fast["short_burn_rate"]) == (
        pytest.approx(100.0),
        pytest.approx(1000.0),
    )
    assert fast["threshold"] == pytest.approx(0.02 * 3 * 86_400 / 3_600)
    assert (fast["state"], fast["severity"]) == ("burning", "page")
    after = service.get(f"{SLO}/alerts?at={utc_text(OUTAGE + 40 * MINUTE_MS)}")["pairs"]
    assert after[0]["state"] == "recovering"
    assert (after[0]["since"], fast["since"]) == (None, utc_text(OUTAGE + MINUTE_MS))
    assert service.get(f"{SLO}/alerts")["pairs"][0]["state"] == "quiet"


def test_list_shows_burn_start_of_pairs(service: ServiceFixture) -> None:
    later = utc_text(OUTAGE + 5 * 60 * MINUTE_MS)
    entry = service.get(f"/slo?at={later}")["entries"][0]
    states = {each["name"]: (each["state"], each["since"]) for each in entry["alerts"]}
    # Five hours later, windows up to an hour no longer contain the outage.
    assert states == {
        "fast": ("quiet", None),
        "steady": ("recovering", None),
        "slow": ("recovering", None),
        # The threshold is 4.03 bad minutes, so the fifth minute is the first above it.
        "creeping": ("burning", utc_text(OUTAGE + 5 * MINUTE_MS)),
    }
    service.source.problems[Indicator(FLOW, AVAILABILITY)] = SliSourceError("no response")
    entry = service.get(f"/slo?at={later}&flow=us->eu&sli=availability")["entries"][0]
    assert [each["since"] for each in entry["alerts"]] == [None] * 4


def test_spec_returns_objective_in_each_format(service: ServiceFixture) -> None:
    native = service.client.get(f"{SLO}/spec")
    assert native.headers["content-type"] == "application/yaml; charset=utf-8"
    (objective,) = yaml.safe_load(native.text)["slo"]["objectives"]
    assert (objective["flows"], objective["target"], objective["window"]) == (
        ["us->eu"], "99.9%", "3d",
    )  # fmt: skip
    assert service.client.get(f"{SLO}/spec?format=native").text == native.text
    openslo = service.client.get(f"{SLO}/spec?format=openslo")
    assert openslo.headers["content-type"] == "application/yaml; charset=utf-8"
    slos = [each for each in yaml.safe_load_all(openslo.text) if each["kind"] == "SLO"]
    assert [
        (each["metadata"]["name"], each["spec"]["objectives"][0]["target"]) for each in slos
    ] == [("us-to-eu-availability", 0.999)]
    rejected = service.client.get(f"{SLO}/spec?format=xml")
    assert (rejected.status_code, rejected.json()["accepted"]) == (422, ["native", "openslo"])


def test_objective_is_found_by_the_id_in_links_of_alerts(store: Store) -> None:
    """Templates of Prometheus cannot shorten ids."""
    flow = Flow("production-us-east-1", "production-eu-central-1")
    key = SliKey(Sli.CHECKPOINT_FRESHNESS, "default")
    started = start_service(store, objectives=(objective(0.99, flow=flow, key=key),))
    linked = f"{flow.slug}-checkpoint-freshness-default"
    shown = slo_id(flow, key)
    assert len(linked) > 63 >= len(shown)
    for found in (linked, shown):
        assert started.get(f"/slo/{found}")["entry"]["id"] == shown
        assert started.get(f"/slo/{found}/alerts")["id"] == shown
        assert started.get(f"/slo/{found}/history")["id"] == shown
        assert started.client.get(f"/slo/{found}/spec").status_code == 200
