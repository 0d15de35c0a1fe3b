"""Random requests get documented responses and never fail."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_service_fixture import ServiceFixture, start_service

from mm2slo_store.store import Store

TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "us->eu", "us-to-eu", "us-to-eu-availability", "availability", "met", "28d", "2026-07",
            "2026-07-12T10:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999", "1970",
            "9999-W53", "-1", "0", "1", "1000", "1e9", "NaN", "null", "csv", "html", "1m", "1h",
            "99999999999d", "lost", "removed", "\x00", "../..", "%s", "{}", "us-to-eu-latency-10s",
        ]
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def service(store: Store) -> ServiceFixture:
    return start_service(store, reports_per_minute=10**9)


@pytest.fixture(scope="module")
def operations(service: ServiceFixture) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in service.get("/openapi.json")["paths"].items()
        for method, operation in methods.items()
    ]


@given(data=st.data())
def test_random_requests_never_fail(
    service: ServiceFixture, operations: list[tuple[str, str, dict[str, Any]]], data: st.DataObject
) -> None:
    client = service.client
    path, method, operation = data.draw(st.sampled_from(operations))
    query = []
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            value = data.draw(TEXTS.filter(lambda text: text not in {"", ".", ".."}))
            path = path.replace(f"{{{parameter['name']}}}", quote(value, safe=""))
        elif data.draw(st.booleans()):
            query.append(f"{quote(parameter['name'])}={quote(data.draw(TEXTS), safe='')}")
    response = client.request(method, f"{path}?{'&'.join(query)}")
    allowed = {*operation["responses"], "403", "404"}
    assert str(response.status_code) in allowed, (path, query, response.text)
    assert response.status_code < 500 or "/readiness" in path
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["status"] == response.status_code
