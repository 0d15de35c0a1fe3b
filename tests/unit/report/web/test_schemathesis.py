"""Schemathesis against the OpenAPI document of the service, in process."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from cutover_samples import SAFE
from hypothesis import HealthCheck, given, settings
from minute_history import FLOW
from report_service_fixture import AS_OF, NOW, sample_source, start_service
from schemathesis.checks import not_a_server_error
from schemathesis.config import ChecksConfig, SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from store_specs.sample_results import evidence, judged, orders_outcome, run_of, unjudged

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import AccessToken, Scope
from mm2slo_report.rendering.page_views import FlowStatusView, GroupView
from mm2slo_report.web.report_app import create_app
from mm2slo_store.store import Store

HOUR = 3_600_000
TOKEN = AccessToken(hashlib.sha256(b"w").hexdigest(), Scope.WRITE, "ops")
LOGIN = {"Authorization": "Bearer w"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    positive_data_acceptance,
]
OPERATIONS = 20
MODES = {"valid": GenerationMode.POSITIVE, "invalid": GenerationMode.NEGATIVE}
# Schemathesis generates slowly: fewer examples than the profiles have.
CHEAP, THOROUGH = (
    settings(
        max_examples=count,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    for count in (5, 200)
)


class FakeFlowStatus:
    """The state of one flow and one group."""

    def cutover(self, flow: Flow) -> CutoverEvidence | None:
        return SAFE if flow.label == SAFE.flow else None

    def flows(self) -> tuple[FlowStatusView, ...]:
        return (FlowStatusView(flow=FLOW, state="running", lag_records=1, lag_seconds=0.5),)

    def groups(self) -> tuple[GroupView, ...]:
        return (GroupView(flow=FLOW, group="orders", ready=True),)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with an audit that has evidence."""
    with Store.open(tmp_path_factory.mktemp("schema") / "r.db", clock=lambda: NOW) as opened:
        window = Window(NOW - 9 * HOUR, NOW - 8 * HOUR)
        lost = [evidence(Verdict.LOST, number) for number in range(5)]
        outcome = orders_outcome(window, found=lost)
        opened.publish(run_of("run-1", judged(outcome), unjudged(window, "payments")))
        yield opened


class Subject:
    """The service and its operations."""

    def __init__(self, store: Store) -> None:
        service = start_service(
            store,
            sample_source(),
            tokens=(TOKEN,),
            flow_status=FakeFlowStatus(),
            hosts=frozenset({asgi.HOST}),
            cache_seconds=30.0,
            reports_per_minute=10**9,
        ).service
        self.app: Any = create_app(service)
        config = SchemathesisConfig(seed=1)
        # Valid data may still be rejected for reasons no schema states, such as a future time.
        accepted = ["2xx", "304", "403", "404", "406", "409", "422"]
        config.projects.default.checks = ChecksConfig.from_dict(
            {"positive_data_acceptance": {"expected-statuses": accepted}}
        )
        schema = schemathesis.openapi.from_asgi(
            "/openapi.json", self.app, config=config, headers=LOGIN
        )
        found = [each for each in schema.get_all_operations() if isinstance(each, Ok)]
        self.operations = [each.ok() for each in found]


@pytest.fixture(scope="module")
def subject(store: Store) -> Subject:
    return Subject(store)


@pytest.fixture(scope="module")
def client(subject: Subject) -> Iterator[Any]:
    with asgi.get_client(subject.app) as opened:
        yield opened


def check_operations(subject: Subject, client: Any, mode: GenerationMode, chosen: settings) -> None:
    """Send generated requests to every operation."""
    for operation in subject.operations:

        @chosen
        @given(operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            case.call_and_validate(session=client, headers=LOGIN, checks=CHECKS)

        if mode is GenerationMode.POSITIVE or operation.query or operation.body:
            ask()


def test_schema_has_every_operation(subject: Subject) -> None:
    assert len({(each.method, each.path) for each in subject.operations}) == OPERATIONS


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_generated_requests_conform_to_schema(
    subject: Subject, client: Any, mode: GenerationMode
) -> None:
    check_operations(subject, client, mode, CHEAP)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_generated_requests_conform_to_schema_thorough(
    subject: Subject, client: Any, mode: GenerationMode
) -> None:
    check_operations(subject, client, mode, THOROUGH)


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", "/slo", {}),
        ("GET", "/slo/{slo}", {"path_parameters": {"slo": "us-to-eu-availability"}}),
        ("GET", "/slo/{slo}/history", {"path_parameters": {"slo": "us-to-eu-availability"}}),
        ("GET", "/slo/{slo}/alerts", {"path_parameters": {"slo": "us-to-eu-availability"}}),
        # Without openslo: Schemathesis cannot parse a stream of YAML documents (RFC 9512).
        (
            "GET",
            "/slo/{slo}/spec",
            {"path_parameters": {"slo": "us-to-eu-latency-10s"}, "query": {"format": "native"}},
        ),
        *(("GET", "/slo/report", {"query": {"format": form}}) for form in ("json", "csv", "md")),
        ("GET", "/flows/{slug}", {"path_parameters": {"slug": "us-to-eu"}}),
        ("GET", "/flows/{slug}/readiness", {"path_parameters": {"slug": "us-to-eu"}}),
        ("GET", "/audits/{run}", {"path_parameters": {"run": "run-1"}}),
        ("GET", "/audits/{run}/evidence", {"path_parameters": {"run": "run-1"}}),
        (
            "POST",
            "/exclusions",
            {
                "media_type": "application/json",
                "body": {
                    "flows": ["us->eu"],
                    "from": utc_text(AS_OF + HOUR),
                    "to": utc_text(AS_OF + 2 * HOUR),
                    "reason": "upgrade",
                },
            },
        ),
    ],
)
def test_existing_resources_conform_to_schema(
    subject: Subject, client: Any, method: str, path: str, more: dict[str, Any]
) -> None:
    """Generated ids do not exist, so these requests name existing resources."""
    (operation,) = (
        each for each in subject.operations if (each.method.upper(), each.path) == (method, path)
    )
    response = operation.Case(**more).call_and_validate(
        session=client, headers=LOGIN, checks=CHECKS[:5]
    )
    assert response.status_code in {200, 201}
