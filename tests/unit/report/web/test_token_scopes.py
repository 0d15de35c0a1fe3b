"""Tokens that are limited to flows: everything else does not exist for them, caches included."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cutover_samples import SAFE
from minute_history import FLOW
from report_service_fixture import (
    NOW,
    OUTAGE,
    REVERSE_FLOW,
    ServiceFixture,
    sample_source,
    start_service,
)
from store_specs.sample_results import AP_EU, evidence, judged, orders_outcome, run_of, unjudged

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.reporting.step_counts import MINUTE_MS
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import Scope, read_tokens
from mm2slo_report.recording.recorder_history import RecorderHealth, TargetHealth
from mm2slo_report.rendering.page_views import FlowStatusView, GroupView
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web.report_service import HIDDEN_NAME, HIDDEN_VERDICT
from mm2slo_store.store import Store

HOUR = 3_600_000
ADDRESS = "http://exporter.internal:9108"
BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
OF_WEST = {"us-to-eu-availability", "us-to-eu-latency-10s"}
OF_EAST = {"eu-to-us-availability"}
FOREIGN_TO_WEST = (
    "eu->us",
    "eu-&gt;us",
    "eu-to-us",
    "ap->eu",
    "ap-&gt;eu",
    "ap-to-eu",
    "orders-ap",
)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


TOKENS, _ = read_tokens(
    f"""\
{digest("all")} write ops
{digest("west")} read:us->eu dashboards of us
{digest("east")} read:eu->* dashboards of eu
{digest("west-ops")} write:us->* ops of us
{digest("none")} read:a->b other clusters
""",
    "tokens",
)


class FakeFlowStatus:
    def cutover(self, flow: Flow) -> CutoverEvidence | None:
        return SAFE if flow.label == SAFE.flow else None

    def flows(self) -> tuple[FlowStatusView, ...]:
        return tuple(FlowStatusView(flow=each, state="running") for each in (FLOW, REVERSE_FLOW))

    def groups(self) -> tuple[GroupView, ...]:
        return (
            GroupView(flow=FLOW, group="orders", ready=True),
            GroupView(flow=REVERSE_FLOW, group="eu-to-us-payments", ready=False),
        )


def as_token(token: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **headers}


@pytest.fixture
def store(tmp_path: Any) -> Iterator[Store]:
    """Runs of both flows into eu with evidence of each, and of eu->us."""
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as opened:
        window = Window(NOW - 9 * HOUR, NOW - 8 * HOUR)
        found = [evidence(Verdict.LOST, number, flow=number % 2) for number in range(8)]
        both = run_of(
            "run-both", judged(orders_outcome(window, found=found)), started_at=NOW - HOUR
        )
        payments = replace(unjudged(window, "us-payments"), flows=(REVERSE_FLOW,))
        back = run_of("run-back", payments, started_at=NOW)
        opened.publish(both)
        opened.publish(replace(back, header=replace(back.header, flows=(REVERSE_FLOW,))))
        for number, flows in enumerate((("us->eu",), ("*",), ("eu->us",))):
            opened.add_exclusion(
                Exclusion(
                    id=f"excluded-{number}", flows=flows, start=NOW + (2 * number + 1) * HOUR,
                    end=NOW + (2 * number + 2) * HOUR, reason="upgrade", who="ops", added_at=NOW,
                ),
                flows=(),
            )  # fmt: skip
        yield opened


@pytest.fixture
def service(store: Store) -> ServiceFixture:
    return start_service(
        store,
        sample_source(),
        tokens=TOKENS,
        flow_status=FakeFlowStatus(),
        cache_seconds=3_600.0,
        reports_per_minute=10_000,
    )


def test_token_lines_with_flows_are_parsed() -> None:
    assert [(each.scope, each.flows, each.name) for each in TOKENS[:3]] == [
        (Scope.WRITE, None, "ops"),
        (Scope.READ, ("us->eu",), "dashboards of us"),
        (Scope.READ, ("eu->*",), "dashboards of eu"),
    ]
    (several,), _ = read_tokens(f"{digest('a')} read:us->eu,*->ap both", "tokens")
    assert several.flows == ("us->eu", "*->ap")


@pytest.mark.parametrize(
    "line", ["read us->eu me", "read:us-to-eu me", "read:us->eu, eu->us me", "read:us-> me",
             "read: us->eu me", "read :us->eu me", "read:,us->eu me", "readus->eu me"]
)  # fmt: skip
def test_token_line_with_unclear_flows_is_rejected(line: str) -> None:
    found, problem = read_tokens(f"{digest('a')} {line}", "tokens")
    assert found == ()
    assert problem.startswith("tokens, line 1: ")


def test_tokens_alternate_on_the_same_caches(service: ServiceFixture) -> None:
    expected = {"all": OF_WEST | OF_EAST, "west": OF_WEST, "east": OF_EAST, "none": set()}
    for token in ("all", "west", "east", "none", "west", "all", "east"):
        login = as_token(token)
        found = service.get("/slo", **login)
        assert {each["id"] for each in found["entries"]} == expected[token]
        assert found["total"] == found["headline"]["objectives"] == len(expected[token])
        flows = service.get("/flows", **login)["flows"]
        assert {each for flow in flows for each in flow["objectives"]} == expected[token]
        for report_format in ("json", "csv", "md", "html"):
            path = f"/slo/report?period=28d&format={report_format}"
            text = service.client.get(path, headers=login).text
            flow_names = {"us->eu": OF_WEST, "eu->us": OF_EAST}
            for name, ids in flow_names.items():
                shown = name in text.replace("&gt;", ">").replace("\\", "")
                assert shown is (ids <= expected[token]), (token, report_format)
        page = service.client.get("/", headers=login).text
        assert {each for each in OF_WEST | OF_EAST if f'data-slo="{each}"' in page} == (
            expected[token]
        )
    # Each scope reads its figures once: two periods of three scopes with objectives, and the
    # details of the outage for two of them.
    assert service.source.count_calls == 10


def test_list_pages_and_totals_are_those_of_the_token(service: ServiceFixture) -> None:
    first = service.get("/slo?limit=1&sort=id", **as_token("west"))
    assert (first["total"], len(first["entries"])) == (2, 1)
    second = service.get(f"/slo?limit=1&sort=id&cursor={first['next']}", **as_token("west"))
    assert (second["total"], second["next"]) == (2, None)
    response = service.client.get("/slo?flow=eu->us", headers=as_token("west"))
    assert (response.status_code, response.json()["accepted"]) == (422, ["us->eu", "us-to-eu"])


@pytest.mark.parametrize("accept", ["application/json", BROWSER])
@pytest.mark.parametrize(
    "path",
    [
        "/slo/eu-to-us-availability", "/slo/eu-to-us-availability/history",
        "/slo/eu-to-us-availability/alerts", "/slo/eu-to-us-availability/spec",
        "/flows/eu-to-us", "/flows/eu->us", "/flows/eu-to-us/readiness", "/audits/run-back",
        "/audits/run-back/evidence",
    ],
)  # fmt: skip
def test_foreign_resource_is_unknown_even_if_cached(
    service: ServiceFixture, path: str, accept: str
) -> None:
    assert service.client.get(path, headers=as_token("all", Accept=accept)).status_code == 200
    refused = service.client.get(path, headers=as_token("west", Accept=accept))
    assert refused.status_code == 404
    assert refused.json()["type"] == "urn:mm2slo:problem:not-found"
    # Similar names are those of the token.
    similar = {"us-to-eu-availability", "us-to-eu", "run-both"}
    assert set(refused.json().get("near", ())) <= similar


def test_no_response_names_a_foreign_flow(service: ServiceFixture) -> None:
    paths = [
        "/", "/slo", "/slo/report", "/slo/report?format=html", "/slo/report?format=csv",
        "/slo/report?format=md", "/slo/us-to-eu-availability", "/flows", "/flows/us-to-eu",
        "/flows/us-to-eu/readiness", "/audits", "/audits/run-both", "/audits/run-both/evidence",
        "/exclusions", "/metrics", "/slo/us-to-eu-availability/history",
        "/slo/us-to-eu-availability/alerts", "/slo/us-to-eu-availability/spec",
    ]  # fmt: skip
    for path in paths:
        service.client.get(path, headers=as_token("all"))
        response = service.client.get(path, headers=as_token("west"))
        assert response.status_code == 200, path
        assert [each for each in FOREIGN_TO_WEST if each in response.text] == [], path
        assert "us-payments" not in response.text, path


def test_audit_of_several_flows_shows_only_those_of_the_token(service: ServiceFixture) -> None:
    audits = service.get("/audits?limit=1", **as_token("west"))
    assert (audits["total"], audits["next"]) == (1, None)
    (run,) = audits["runs"]
    assert (run["id"], run["flows"], run["exit_code"]) == ("run-both", ["us->eu"], None)
    assert run["verdict"] == HIDDEN_VERDICT
    (topic,) = service.get("/audits/run-both", **as_token("west"))["topics"]
    assert topic["sources"] == [{"flow": "us->eu", "topic": "orders"}]
    seen, path = [], "/audits/run-both/evidence?verdict=lost&limit=3"
    page = service.get(path, **as_token("west"))
    while True:
        seen += [each["offset"] for each in page["evidence"]]
        if page["next"] is None:
            break
        page = service.get(f"{path}&cursor={page['next']}", **as_token("west"))
    assert seen == [0, 2, 4, 6]
    assert run["bytes_read"] is None
    everything = service.get("/audits", **as_token("all"))
    assert everything["runs"][1]["bytes_read"] is not None
    assert [(each["id"], each["flows"]) for each in everything["runs"]] == [
        ("run-back", ["eu->us"]), ("run-both", [AP_EU.label, FLOW.label]),
    ]  # fmt: skip
    assert everything["runs"][1]["verdict"].startswith("2 lost")
    assert service.get("/audits", **as_token("none"))["total"] == 0


def test_metrics_of_audits_are_those_of_the_token(service: ServiceFixture) -> None:
    for token, finished, flows in (("all", 2, 2), ("west", 1, 1), ("none", 0, 0), ("all", 2, 2)):
        text = service.client.get("/metrics", headers=as_token(token)).text
        assert f'mm2_audit_runs{{state="finished"}} {finished}.0' in text
        assert text.count("mm2_audit_last_run_timestamp_seconds{") == flows
        assert text.count("# TYPE process_open_fds") == 1
        assert ("mm2_report_requests_total" in text) is (token == "all")


def test_maintenance_names_only_flows_of_the_token(service: ServiceFixture) -> None:
    found = service.get("/exclusions", **as_token("west"))["exclusions"]
    assert [(each["id"], each["flows"]) for each in found] == [
        ("excluded-0", ["us->eu"]), ("excluded-1", ["us->eu"]),
    ]  # fmt: skip
    assert {each["added_by"] for each in found} == {HIDDEN_NAME}
    everything = service.get("/exclusions", **as_token("all"))["exclusions"]
    assert [each["added_by"] for each in everything] == ["ops"] * 3


class RecorderOfAnExporter:
    health = RecorderHealth(
        targets=(TargetHealth(name=ADDRESS, scrapes=9, failures=9, problem="refused"),)
    )


@pytest.mark.parametrize(
    "path", ["/", "/slo", "/slo/us-to-eu-availability", "/slo/us-to-eu-availability/history",
             "/metrics", "/slo/report?format=md"],
)  # fmt: skip
def test_no_error_names_an_address_to_a_token_of_some_flows(store: Store, path: str) -> None:
    class AwayStatus:
        def cutover(self, flow: Flow) -> CutoverEvidence | None:
            return SAFE if flow.label == SAFE.flow else None

        def flows(self) -> tuple[FlowStatusView, ...]:
            raise SliSourceError(f"exporter {ADDRESS} is unreachable")

        def groups(self) -> tuple[GroupView, ...]:
            raise SliSourceError(f"exporter {ADDRESS} is unreachable")

    source = sample_source()
    source.down = SliSourceError(f"Prometheus at {ADDRESS} is unreachable")
    service = start_service(
        store, source, tokens=TOKENS, flow_status=AwayStatus(), recorder=RecorderOfAnExporter()
    )
    service.client.get("/slo", headers=as_token("all"))
    assert "exporter.internal" in service.client.get(path, headers=as_token("all")).text
    assert "exporter.internal" not in service.client.get(path, headers=as_token("west")).text


def test_writer_of_some_flows_excludes_only_those(service: ServiceFixture) -> None:
    west = as_token("west-ops")
    before = service.get("/slo", **as_token("all"))["headline"]["breached"]
    body = {
        "flows": ["*"],
        "from": utc_text(OUTAGE - MINUTE_MS),
        "to": utc_text(OUTAGE + 10 * MINUTE_MS),
        "reason": "upgrade",
    }
    added = service.client.post("/exclusions", json=body, headers=west)
    assert (added.status_code, added.json()["flows"]) == (201, ["us->eu"])
    # Caches of every token are dropped.
    assert (before, service.get("/slo", **as_token("all"))["headline"]["breached"]) == (1, 0)
    refused = service.client.post("/exclusions", json={**body, "flows": ["eu->us"]}, headers=west)
    assert (refused.status_code, "eu->us" in refused.text) == (422, False)
    assert (
        service.client.post("/exclusions", json=body, headers=as_token("west")).status_code == 403
    )

    def remove(name: str) -> tuple[int, str]:
        response = service.client.delete(f"/exclusions/{name}", headers=west)
        return response.status_code, response.json().get("type", "")

    assert added.json()["added_by"] == "ops of us"
    assert remove(added.json()["id"])[0] == 200
    assert remove("excluded-0")[0] == 200
    assert remove("excluded-1") == (403, "urn:mm2slo:problem:scope")
    assert remove("excluded-2") == (404, "urn:mm2slo:problem:not-found")
