"""Access control: tokens, hosts, body sizes, methods and security headers."""

import base64
import hashlib

import pytest
from report_service_fixture import FixedTokens, ServiceFixture, sample_source, start_service

from mm2slo_core.user_errors import UserError
from mm2slo_report.access_tokens import AccessToken, Scope, read_tokens
from mm2slo_report.service_settings import (
    allowed_hosts,
    host_name,
    is_loopback,
    require_tokens_or_loopback,
)
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.store import Store

READ, WRITE = "read-me-7", "write-me-9"


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


FILE = f"""\
# tokens
{digest(READ)} read  dashboards  # since July
{digest(WRITE).upper()}\twrite ops

"""


@pytest.fixture
def secured(store: Store) -> ServiceFixture:
    return start_service(store, sample_source(), tokens=read_tokens(FILE, "tokens")[0])


def test_token_file_lines_are_parsed() -> None:
    found, problem = read_tokens(FILE, "tokens")
    assert found == (
        AccessToken(digest(READ), Scope.READ, "dashboards"),
        AccessToken(digest(WRITE), Scope.WRITE, "ops"),
    )
    assert problem == ""
    assert digest(READ) not in repr(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hunter2 read me", "line 1: expected the 64 hex digits"),
        (f"{digest(READ)} admin me", "line 1"),
        (f"{digest(READ)}", "line 1"),
        (f"{digest(READ)} read a\n{digest(READ).upper()} write b", "line 2: duplicate token"),
        ("# none\n", "lists no token"),
    ],
)
def test_invalid_token_file_is_rejected_without_quoting_it(text: str, message: str) -> None:
    _, problem = read_tokens(text, "tokens")
    assert message in problem
    assert "hunter2" not in problem
    assert digest(READ) not in problem


def test_request_without_token_is_rejected(secured: ServiceFixture) -> None:
    for path in ("/", "/slo", "/metrics", "/openapi.json", "/exclusions", "/nope"):
        response = secured.client.get(path)
        assert (path, response.status_code) == (path, 401)
        assert response.headers["www-authenticate"] == 'Bearer realm="mm2slo"'
        assert response.headers["content-type"] == "application/problem+json"
    for path in ("/healthz", "/readyz"):
        assert secured.client.get(path).status_code == 200


def test_readiness_names_neither_addresses_nor_files(
    secured: ServiceFixture, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UserError("the store postgresql://db.internal/slo failed")

    secured.source.down = SliSourceError("Prometheus at http://prom.internal:9090 is unreachable")
    monkeypatch.setattr(type(secured.service.reporter.facts), "exclusions", fail)

    response = secured.client.get("/readyz")

    assert (response.status_code, len(response.json()["problems"])) == (503, 2)
    assert "internal" not in response.text
    assert "prom.internal" in caplog.text
    assert "db.internal" in caplog.text


@pytest.mark.parametrize(
    "header",
    [
        "Bearer wrong",
        "Bearer",
        "Bearer ",
        f"Token {READ}",
        f"Bearer {digest(READ)}",
        "Basic !!!",
        "Basic " + base64.b64encode(b"me:wrong").decode(),
        "Basic " + base64.b64encode(READ.encode()).decode(),
        "Bearer \xff\xfe",
    ],
)
def test_wrong_token_is_rejected(secured: ServiceFixture, header: str) -> None:
    response = secured.client.get("/slo", headers={"Authorization": header.encode("latin-1")})
    assert response.status_code == 401


def test_token_is_accepted_as_bearer_and_basic_password(secured: ServiceFixture) -> None:
    basic = base64.b64encode(f"anyone:{READ}".encode()).decode()
    for header in (f"Bearer {READ}", f"bearer  {WRITE}", f"Basic {basic}"):
        assert secured.get("/slo", Authorization=header)["total"] == 3
    requested = secured.client.get("/", headers={"Accept": "text/html"})
    assert requested.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize("header", ["", f"Bearer {READ}", "Basic"])
def test_write_needs_bearer_token_with_write_scope(secured: ServiceFixture, header: str) -> None:
    if header == "Basic":
        header += " " + base64.b64encode(f"a:{WRITE}".encode()).decode()
    response = secured.client.post("/exclusions", json={}, headers={"Authorization": header})
    assert response.status_code == (403 if READ in header else 401)


def test_write_without_configured_tokens_is_forbidden(service: ServiceFixture) -> None:
    assert service.client.post("/exclusions", json={}).status_code == 403
    assert service.client.delete("/exclusions/x").status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9470", 200),
        ("127.0.0.1:9470", 200),
        ("[::1]:9470", 200),
        ("localhost.", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("10.0.0.7", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_unknown_host_header_is_rejected(service: ServiceFixture, host: str, status: int) -> None:
    assert service.client.get("/healthz", headers={"Host": host}).status_code == status


def test_allowed_hosts_include_own_names_and_addresses(store: Store) -> None:
    assert allowed_hosts("127.0.0.1", ["SLO.Example"], ["box"]) == {
        "localhost", "127.0.0.1", "[::1]", "slo.example",
    }  # fmt: skip
    assert {"box", "[fd00::1]"} <= allowed_hosts("fd00::1", [], ["Box"])
    assert host_name("[FD00::1]:9470") == "[fd00::1]"
    everywhere = start_service(store, hosts=frozenset({"slo.example"}), any_address=True)
    for host, status in (("10.0.0.7:1", 200), ("[fd00::1]", 200), ("box", 421)):
        assert everywhere.client.get("/healthz", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.1.2.3", True), ("", False),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("box", False)],  # noqa: S104 - compared
)  # fmt: skip
def test_listening_without_tokens_requires_loopback(host: str, *, own: bool) -> None:
    assert is_loopback(host) is own
    if own:
        require_tokens_or_loopback(host, None)
        return
    with pytest.raises(UserError, match=r"set report\.tokens_file, or listen on 127\.0\.0\.1"):
        require_tokens_or_loopback(host, None)
    require_tokens_or_loopback(host, FixedTokens(()))


def test_large_body_is_rejected_with_and_without_length(secured: ServiceFixture) -> None:
    headers = {"Authorization": f"Bearer {WRITE}", "Content-Type": "application/json"}
    large = b" " * (64 * 1024 + 1)
    assert secured.client.post("/exclusions", content=large, headers=headers).status_code == 413
    parts = (large[:40_000] for _ in range(2))
    response = secured.client.post("/exclusions", content=parts, headers=headers)
    assert (response.status_code, response.json()["type"]) == (413, "urn:mm2slo:problem:too-large")
    for length in ("-1", "x", "9" * 30):
        refused = secured.client.get("/slo", headers={**headers, "Content-Length": length})
        assert refused.status_code == 413


def test_unsupported_method_returns_405_problem(service: ServiceFixture) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        response = service.client.request(method, "/slo")
        assert (response.status_code, response.json()["status"]) == (405, 405)
        assert "GET" in response.headers["allow"]
    assert service.client.options("/slo", headers={"Origin": "https://x"}).status_code == 405


def test_cross_origin_request_gets_no_cors_headers(service: ServiceFixture) -> None:
    response = service.client.get("/slo", headers={"Origin": "https://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    assert response.headers["cross-origin-resource-policy"] == "same-origin"


def test_head_returns_get_headers_without_body(service: ServiceFixture) -> None:
    full, head = service.client.get("/slo"), service.client.head("/slo")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == full.headers["content-length"]
    assert head.headers["etag"] == full.headers["etag"]


def test_tls_sets_strict_transport_security(store: Store, service: ServiceFixture) -> None:
    secure = start_service(store, tls=True)
    assert "strict-transport-security" in secure.client.get("/slo").headers
    assert "strict-transport-security" not in service.client.get("/slo").headers


def test_unknown_path_returns_404_problem(service: ServiceFixture) -> None:
    response = service.client.get("/docs")
    assert response.status_code == 404
    assert response.json()["type"] == "urn:mm2slo:problem:not-found"
    assert service.client.get("/slo/").status_code == 404
