"""Schemathesis against the service's own OpenAPI document, in process."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from reported import FLOW
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
from serving import AS_OF, NOW, a_source, served
from store_specs.results import evidence, judged, orders_outcome, run_of, unjudged

from mm2slo_core.audit.scope import Window
from mm2slo_core.audit.verdict import Verdict
from mm2slo_report.rendering.figures import utc
from mm2slo_report.rendering.views import FlowView, GroupView
from mm2slo_report.web.app import create_app
from mm2slo_report.web.tokens import Scope, Token
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = 3_600_000
TOKEN = Token(hashlib.sha256(b"w").hexdigest(), Scope.WRITE, "ops")
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
OPERATIONS = 19
MODES = {"what fits": GenerationMode.POSITIVE, "what does not": GenerationMode.NEGATIVE}
CHEAP, THOROUGH = (
    settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    for count in (5, 200)
)


class Nearby:
    """An exporter that says something of everything."""

    def flows(self) -> tuple[FlowView, ...]:
        return (FlowView(flow=FLOW, state="running", lag_records=1, lag_seconds=0.5),)

    def groups(self) -> tuple[GroupView, ...]:
        return (GroupView(flow=FLOW, group="orders", ready=True),)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An audit with evidence."""
    with Store.open(tmp_path_factory.mktemp("schema") / "r.db", clock=lambda: NOW) as opened:
        window = Window(NOW - 9 * HOUR, NOW - 8 * HOUR)
        lost = [evidence(Verdict.LOST, number) for number in range(5)]
        outcome = orders_outcome(window, found=lost)
        opened.publish(run_of("run-1", judged(outcome), unjudged(window, "payments")))
        yield opened


class Subject:
    """The service, its operations, and a client that is kept."""

    def __init__(self, store: Store) -> None:
        service = served(
            store,
            a_source(),
            tokens=(TOKEN,),
            surroundings=Nearby(),
            hosts=frozenset({asgi.HOST}),
            kept_seconds=30.0,
            reports_per_minute=10**9,
        ).service
        self.app: Any = create_app(service)
        config = SchemathesisConfig(seed=1)
        # What fits the schema may be refused for what no schema says: a time that is to come.
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


def hold_to_it(subject: Subject, client: Any, mode: GenerationMode, chosen: settings) -> None:
    """Asks every operation so many times."""
    for operation in subject.operations:

        @chosen
        @given(operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            case.call_and_validate(session=client, headers=LOGIN, checks=CHECKS)

        if mode is GenerationMode.POSITIVE or operation.query or operation.body:
            ask()


def test_every_operation_is_among_them(subject: Subject) -> None:
    assert len({(each.method, each.path) for each in subject.operations}) == OPERATIONS


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_it_answers_as_it_says(subject: Subject, client: Any, mode: GenerationMode) -> None:
    hold_to_it(subject, client, mode, CHEAP)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_it_answers_as_it_says_whatever_is_asked(
    subject: Subject, client: Any, mode: GenerationMode
) -> None:
    hold_to_it(subject, client, mode, THOROUGH)


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", "/slo", {}),
        ("GET", "/slo/{slo}", {"path_parameters": {"slo": "us-to-eu-availability"}}),
        ("GET", "/slo/{slo}/history", {"path_parameters": {"slo": "us-to-eu-availability"}}),
        ("GET", "/slo/{slo}/alerts", {"path_parameters": {"slo": "us-to-eu-availability"}}),
        ("GET", "/slo/{slo}/spec", {"path_parameters": {"slo": "us-to-eu-latency-10s"}}),
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
                    "from": utc(AS_OF + HOUR),
                    "to": utc(AS_OF + 2 * HOUR),
                    "reason": "upgrade",
                },
            },
        ),
    ],
)
def test_what_is_there_is_as_the_document_says(
    subject: Subject, client: Any, method: str, path: str, more: dict[str, Any]
) -> None:
    """Generated ids are of nothing, so these are asked for by name."""
    (operation,) = (
        each for each in subject.operations if (each.method.upper(), each.path) == (method, path)
    )
    answer = operation.Case(**more).call_and_validate(
        session=client, headers=LOGIN, checks=CHECKS[:5]
    )
    assert answer.status_code in {200, 201}
