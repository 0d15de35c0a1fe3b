"""`/slo/report` and `/`: formats by `format` and by `Accept`."""

import csv
import io

import pytest
from minute_history import AVAILABILITY, FLOW, objective
from report_service_fixture import OUTAGE, ServiceFixture, start_service

from mm2slo_core.objectives.objective import Severity
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.reporting.step_counts import Indicator
from mm2slo_core.topology import Flow
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web.http_responses import ProblemError
from mm2slo_report.web.request_checks import ReportFormat, negotiate_format
from mm2slo_store.store import Store

REPORT = "/slo/report?period=2026-07"
XSS = "<script>alert(1)</script>"


def test_all_formats_have_the_same_values(service: ServiceFixture) -> None:
    as_json = service.get(f"{REPORT}&format=json")
    rows = list(csv.DictReader(io.StringIO(service.client.get(f"{REPORT}&format=csv").text)))
    by_id = {each["id"]: each for each in rows}
    entry = next(each for each in as_json["entries"] if each["id"] == "us-to-eu-availability")
    row = by_id["us-to-eu-availability"]
    assert row["record"] == "incident"
    assert (row["incident_bad_events"], float(row["incident_equivalent_minutes"])) == ("360", 6)
    (incident,) = as_json["incidents"]
    assert (incident["id"], incident["bad_events"]) == ("us-to-eu-availability", 360)
    assert (incident["start"], incident["duration_seconds"]) == (utc_text(OUTAGE), 360)
    assert incident["consumed_ratio"] == pytest.approx(6 / 44.64)
    row = next(each for each in rows if each["id"] == "us-to-eu-availability")
    assert entry["events"]["bad"] == 360 == int(row["bad"])
    assert float(row["sli_ratio"]) == entry["sli_ratio"]
    assert float(row["budget_remaining_ratio"]) == entry["budget"]["remaining_ratio"]
    assert by_id["eu-to-us-availability"]["sli_ratio"] == ""
    # 6 days of 60 a minute: 518,040 of 518,400 are good.
    assert entry["sli_ratio"] == pytest.approx(518_040 / 518_400)
    for form in ("md", "html"):
        text = service.client.get(f"{REPORT}&format={form}").text
        assert "99.93" in text
        assert "Costliest incidents" in text
        assert "us-&gt;eu" in text if form == "html" else "us" in text


def test_report_filtered_by_flow_has_only_that_flow(service: ServiceFixture) -> None:
    found = service.get("/slo/report?flow=eu->us&period=28d")
    assert [each["flow"]["name"] for each in found["entries"]] == ["eu->us"]
    assert found["headline"]["objectives"] == 1
    assert found["window"]["name"] == "28d"


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
         "text/html; charset=utf-8"),
        ("application/json;q=0.1, text/*;q=0.5", "text/csv; charset=utf-8"),
    ],
)  # fmt: skip
def test_accept_header_selects_format(service: ServiceFixture, accept: str, media: str) -> None:
    response = service.client.get(REPORT, headers={"Accept": accept})
    assert response.headers["content-type"] == media
    assert "Accept" in response.headers["vary"]


def test_format_parameter_overrides_accept_header(service: ServiceFixture) -> None:
    response = service.client.get(f"{REPORT}&format=csv", headers={"Accept": "text/html"})
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="slo-2026-07.csv"'


def test_unsupported_format_returns_406(service: ServiceFixture) -> None:
    response = service.client.get(REPORT, headers={"Accept": "application/pdf"})
    assert response.status_code == 406
    assert "text/csv" in response.json()["accepted"]
    assert service.client.get(f"{REPORT}&format=pdf").status_code == 422


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("text/html;q=0, */*", ReportFormat.JSON),
        ("application/json;q=0, */*;q=0.1", ReportFormat.CSV),
        ("text/*;q=0.9, text/html", ReportFormat.HTML),
        ("TEXT/HTML ; Q=0.4", ReportFormat.HTML),
        ("text/csv;q=huge, text/html;q=0.1", ReportFormat.HTML),
        (",", ReportFormat.JSON),
    ],
)
def test_most_specific_media_range_decides_quality(accept: str, form: ReportFormat) -> None:
    if accept == ",":
        with pytest.raises(ProblemError):
            negotiate_format(accept)
        return
    assert negotiate_format(accept) is form


def test_pages_have_strict_security_policy_and_no_inline_style(
    service: ServiceFixture,
) -> None:
    for path in ("/", f"{REPORT}&format=html"):
        response = service.client.get(path)
        assert response.status_code == 200
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert 'style="' not in response.text
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["referrer-policy"] == "no-referrer"


def test_status_page_shows_flows_objectives_and_incidents(service: ServiceFixture) -> None:
    text = service.client.get("/").text
    for expected in ("us-&gt;eu", "eu-&gt;us", "99.861 %", "no exporter is configured"):
        assert expected in text
    # The outage as an incident, in the time zone of the report.
    assert "2026-07-12 12:30 CEST" in text


def test_page_values_are_escaped(store: Store) -> None:
    flow = Flow(f'us"{XSS}', "eu")
    evil = objective(0.999, flow=flow, window=3 * 86_400.0, max_severity=Severity.PAGE)
    shown = start_service(store, objectives=(evil, objective(0.999, window=3 * 86_400.0)))
    shown.source.problems[Indicator(flow, AVAILABILITY)] = SliSourceError(f"broker says {XSS}")
    shown.source.source_warnings = (f"retention {XSS}",)
    for path in ("/", "/slo/report?format=html", "/slo/report?format=md"):
        text = shown.client.get(path).text
        # In Markdown, a backslash escapes the tag.
        assert "<script" not in text.replace("\\<script", "")
        assert "alert" in text
    shown.source.down = SliSourceError(XSS)
    for path in ("/", "/slo/report?format=html"):
        assert "<script" not in shown.client.get(path).text
    response = shown.client.get("/slo/us-to-eu-availability")
    assert (response.status_code, response.headers["content-type"]) == (
        502,
        "application/problem+json",
    )
    assert response.headers["x-content-type-options"] == "nosniff"
    assert FLOW.label == "us->eu"


def test_formula_in_flow_name_is_escaped_in_csv(store: Store) -> None:
    flow = Flow("=cmd|'/c calc'!A1", "eu")
    shown = start_service(store, objectives=(objective(0.999, flow=flow, window=3 * 86_400.0),))
    (row,) = csv.DictReader(io.StringIO(shown.client.get("/slo/report?format=csv").text))
    assert row["flow"].startswith("'=cmd")
    assert row["source"].startswith("'=cmd")
