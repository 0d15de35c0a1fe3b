"""The OpenAPI document: every route, and answers that match its model and its schema."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from cutover_samples import SAFE
from fastapi import FastAPI
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator
from minute_history import FLOW
from pydantic import TypeAdapter
from report_service_fixture import AS_OF, NOW, ServiceFixture, sample_source, start_service
from store_specs.sample_results import evidence, judged, orders_outcome, run_of, unjudged

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import AccessToken, Scope
from mm2slo_report.rendering.page_views import FlowStatusView, GroupView, RecordBounds
from mm2slo_report.web.operation_routes import ServiceHealth
from mm2slo_store.store import Store

HOUR = 3_600_000
WRITER = {"Authorization": "Bearer w"}
SLO = "/slo/us-to-eu-availability"
ANSWERS = {
    "GET /slo": ("/slo", "/slo?limit=1", "/slo?period=2026-07", "/slo?at=2026-07-01T00:00:00Z"),
    "GET /slo/report": ("/slo/report", "/slo/report?period=2026-07"),
    "GET /slo/{slo}": (SLO, "/slo/eu-to-us-availability", "/slo/us-to-eu-latency-10s"),
    "GET /slo/{slo}/history": (f"{SLO}/history", "/slo/eu-to-us-availability/history?step=1d"),
    "GET /slo/{slo}/alerts": (f"{SLO}/alerts",),
    "GET /flows": ("/flows",),
    "GET /flows/{slug}": ("/flows/us-to-eu", "/flows/eu-to-us"),
    "GET /flows/{slug}/cutover": (
        "/flows/us-to-eu/cutover?phase=go",
        "/flows/eu-to-us/cutover?phase=ready&accept=lag%3Dknown",
    ),
    "GET /flows/{slug}/readiness": ("/flows/us-to-eu/readiness", "/flows/eu-to-us/readiness"),
    "GET /audits": ("/audits", "/audits?limit=1"),
    "GET /audits/{run}": ("/audits/run-1",),
    "GET /audits/{run}/evidence": ("/audits/run-1/evidence?limit=2",),
    "GET /exclusions": ("/exclusions",),
    "POST /exclusions": ("/exclusions",),
    "DELETE /exclusions/{exclusion}": ("/exclusions/{added}",),
    "GET /healthz": ("/healthz",),
    "GET /readyz": ("/readyz",),
}
"""Requests of every JSON route, in this order."""
TEXT = {"GET /slo/{slo}/spec", "GET /metrics", "GET /"}
WITHOUT_UNIT = {"threshold", "lower", "upper"}
"""Numbers whose unit is that of a burn rate, or in the name of what contains them."""


class FakeFlowStatus:
    def cutover(self, flow: Flow) -> CutoverEvidence | None:
        return SAFE if flow.label == SAFE.flow else None

    def flows(self) -> tuple[FlowStatusView, ...]:
        return (FlowStatusView(flow=FLOW, state="running", lag_records=1, lag_seconds=0.5),)

    def groups(self) -> tuple[GroupView, ...]:
        return (
            GroupView(flow=FLOW, group="orders", ready=False, reasons=("checkpoint_stale",),
                      checkpoint_lag_records=4, redelivery_records=RecordBounds(4, 5.5)),
        )  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFixture]:
    """A service with an audit that has evidence, and a token that may write."""
    with Store.open(tmp_path_factory.mktemp("openapi") / "r.db", clock=lambda: NOW) as opened:
        window = Window(NOW - 9 * HOUR, NOW - 8 * HOUR)
        lost = [evidence(Verdict.LOST, number) for number in range(5)]
        units = (judged(orders_outcome(window, found=lost)), unjudged(window, "payments"))
        for number in range(2):
            opened.publish(run_of(f"run-{number}", *units))
        token = AccessToken(hashlib.sha256(b"w").hexdigest(), Scope.WRITE, "ops")
        found = start_service(
            opened, sample_source(), tokens=(token,), flow_status=FakeFlowStatus()
        )
        found.client.headers.update(WRITER)
        yield found


@pytest.fixture(scope="module")
def document(service: ServiceFixture) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def routes(service: ServiceFixture) -> dict[str, APIRoute]:
    """The routes of the real application, by method and path."""
    app: Any = service.client.app
    while not isinstance(app, FastAPI):
        app = app._app  # within its middleware
    # Newer versions of FastAPI keep included routers apart.
    routers = [getattr(each, "original_router", None) for each in app.routes]
    found = [*app.routes, *(route for router in routers if router for route in router.routes)]
    return {
        f"{method} {route.path}": route
        for route in found
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }


def schema_of(document: dict[str, Any], key: str, status: int, media: str) -> dict[str, Any]:
    method, _, path = key.partition(" ")
    content = document["paths"][path][method.lower()]["responses"][str(status)]["content"]
    return {**content[media]["schema"], "components": document["components"]}


def test_every_route_is_documented_with_a_model_or_as_text(
    routes: dict[str, APIRoute], document: dict[str, Any]
) -> None:
    assert {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
    } == set(routes)
    assert set(routes) == set(ANSWERS) | TEXT
    for key, route in routes.items():
        assert route.summary, key
        if key not in TEXT:
            assert "properties" in answer_schema(route), key
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == "0.1.0"
    assert set(document["components"]["securitySchemes"]) == {"bearer", "basic"}


def answer_schema(route: APIRoute) -> dict[str, Any]:
    """Of a model or of a dataclass, as the answer is written."""
    return TypeAdapter(route.response_model).json_schema(mode="serialization")


def check_closed(schema: dict[str, Any]) -> None:
    """Unknown and missing fields of an answer are errors, at every depth."""
    for each in (schema, *schema.get("$defs", {}).values()):
        if each["type"] == "object":
            assert each["additionalProperties"] is False, each
            assert each["required"] == [*each["properties"]], each


def test_every_answer_matches_its_model_and_schema(
    service: ServiceFixture, routes: dict[str, APIRoute], document: dict[str, Any]
) -> None:
    body = {
        "flows": ["us->eu"],
        "from": utc_text(AS_OF + HOUR),
        "to": utc_text(AS_OF + 2 * HOUR),
        "reason": "x",
    }
    added = ""
    for key, paths in ANSWERS.items():
        method = key.partition(" ")[0]
        for path in paths:
            sent = {"json": body} if method == "POST" else {}
            response = service.client.request(method, path.format(added=added), **sent)
            assert response.status_code == (201 if method == "POST" else 200), response.text
            added = added or response.json().get("id", "") if method == "POST" else added
            check_closed(answer_schema(routes[key]))
            schema = schema_of(document, key, response.status_code, "application/json")
            problems = Draft202012Validator(schema).iter_errors(response.json())
            assert [each.message for each in problems] == [], path


def test_problems_match_the_documented_schema(
    service: ServiceFixture, document: dict[str, Any]
) -> None:
    for path, status in (("/slo/x", 404), (f"{SLO}?at=x", 422), ("/slo/us-to-eu-availabilty", 404)):
        response = service.client.get(path)
        assert response.status_code == status
        schema = schema_of(document, "GET /slo/{slo}", status, "application/problem+json")
        assert [*Draft202012Validator(schema).iter_errors(response.json())] == []


def test_fractional_quantities_have_their_unit_in_their_name(document: dict[str, Any]) -> None:
    units = ("_seconds", "_per_second", "_ratio", "_minutes", "_events", "_rate", "_records",
             "_bytes", "_ratio_change")  # fmt: skip
    counts = {"good", "bad", "total", "unknown", "excluded", "records", "seconds", "ratio"}
    unclear = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, described in schema.get("properties", {}).items()
        if _is_number(described)
        and not field.endswith(units)
        and field not in counts | WITHOUT_UNIT
    ]
    assert unclear == []


def _is_number(described: dict[str, Any]) -> bool:
    options = [described, *described.get("anyOf", ())]
    return any(each.get("type") == "number" for each in options)


def test_model_rejects_what_it_does_not_describe() -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        ServiceHealth.model_validate({"status": "ok", "more": 1})
