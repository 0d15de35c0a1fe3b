"""The OpenAPI document: routes, valid examples, and responses that match the schemas."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from report_service_fixture import start_service

from mm2slo_report.web.openapi import schema_of

if TYPE_CHECKING:
    from report_service_fixture import ServiceFixture

    from mm2slo_store import Store

ROUTES = {
    "/slo", "/slo/report", "/slo/{slo}", "/slo/{slo}/history", "/slo/{slo}/alerts",
    "/slo/{slo}/spec", "/flows", "/flows/{slug}", "/flows/{slug}/readiness", "/audits",
    "/audits/{run}", "/audits/{run}/evidence", "/exclusions", "/exclusions/{exclusion}",
    "/healthz", "/readyz", "/metrics", "/",
}  # fmt: skip
_KINDS: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip


def misfits(value: Any, schema: dict[str, Any], where: str = "") -> list[str]:
    """Violations of *schema* by *value*; a subset of JSON Schema."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(
        isinstance(value, _KINDS[kind]) and not (kind == "number" and isinstance(value, bool))
        for kind in kinds
    ):
        return [f"{where}: {value!r} is none of {kinds}"]
    found = []
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                found += misfits(value[name], inner, f"{where}.{name}")
            elif where == "":
                found.append(f".{name} is missing")
    if isinstance(value, list) and "items" in schema:
        for each in value:
            found += misfits(each, schema["items"], f"{where}[]")
    return found


@cache
def document(client: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def service(store: Store) -> ServiceFixture:
    return start_service(store)


def test_openapi_document_has_every_route(service: ServiceFixture) -> None:
    found = document(service.client)
    assert found["openapi"].startswith("3.1")
    assert set(found["paths"]) == ROUTES
    assert found["info"]["version"] == "0.1.0"
    assert set(found["components"]["securitySchemes"]) == {"bearer", "basic"}


def test_json_responses_have_valid_examples(service: ServiceFixture) -> None:
    examples = 0
    for path, methods in document(service.client)["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
            for status, response in operation["responses"].items():
                for media, content in response.get("content", {}).items():
                    if "json" not in media:
                        continue
                    assert content["example"], (path, status)
                    assert misfits(content["example"], content["schema"]) == []
                    examples += status.startswith("2")
    assert examples == 16


@pytest.mark.parametrize(
    ("route", "path"),
    [
        ("/slo", "/slo"),
        ("/slo/report", "/slo/report?period=2026-07"),
        ("/slo/{slo}", "/slo/us-to-eu-availability"),
        ("/slo/{slo}", "/slo/eu-to-us-availability"),
        ("/slo/{slo}/history", "/slo/us-to-eu-availability/history"),
        ("/slo/{slo}/alerts", "/slo/us-to-eu-availability/alerts"),
        ("/flows", "/flows"),
        ("/flows/{slug}", "/flows/us-to-eu"),
        ("/audits", "/audits"),
        ("/exclusions", "/exclusions"),
        ("/healthz", "/healthz"),
        ("/readyz", "/readyz"),
    ],
)
def test_responses_match_the_documented_schema(
    service: ServiceFixture, route: str, path: str
) -> None:
    operation = document(service.client)["paths"][route]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert misfits(service.get(path), schema) == []


def test_problems_match_the_documented_schema(service: ServiceFixture) -> None:
    answers = document(service.client)["paths"]["/slo/{slo}"]["get"]["responses"]
    for path, status in (("/slo/x", "404"), ("/slo/us-to-eu-availability?at=x", "422")):
        response = service.client.get(path)
        assert str(response.status_code) == status
        schema = answers[status]["content"]["application/problem+json"]["schema"]
        assert misfits({**response.json(), "near": []}, schema) == []


def test_schema_of_document_requires_types_and_members() -> None:
    schema = schema_of({"a": 1, "b": [{"c": None}], "d": True})
    assert misfits({"a": 0.5, "b": [], "d": None}, schema) == []
    assert misfits({"a": "x", "b": {}, "d": 1}, schema) == [
        ".a: 'x' is none of ['number', 'null']",
        ".b: {} is none of ['array']",
        ".d: 1 is none of ['boolean', 'null']",
    ]
