"""`/flows/{slug}/cutover`: the gate as a pipeline or a gateway asks it."""

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest
from cutover_samples import SAFE
from report_service_fixture import ServiceFixture, start_service

from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import AccessToken, Scope
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web.flow_status import ExporterFlowStatus
from mm2slo_store.store import Store

FLOW = Flow("us", "eu")
PATH = "/flows/us-to-eu/cutover?phase=go"
READ = AccessToken(hashlib.sha256(b"r").hexdigest(), Scope.READ, "gateway")
WRITE = AccessToken(hashlib.sha256(b"w").hexdigest(), Scope.WRITE, "ops")
OTHER = AccessToken(hashlib.sha256(b"o").hexdigest(), Scope.READ, "tenant", ("eu->us",))


class Exporters:
    """Exporters by address: evidence, a status without it, or no answer."""

    def __init__(self, **answers: CutoverEvidence | int | None) -> None:
        self.answers = answers

    def __call__(self, address: str, path: str = "/metrics") -> Iterator[str]:
        assert path == "/flows/us-to-eu/cutover"
        answer = self.answers[address]
        if answer is None:
            raise SliSourceError("exporter down did not respond", slow=True)
        if isinstance(answer, int):
            raise SliSourceError(f"exporter returned status {answer}", status=answer)
        yield from json.dumps(asdict(answer), indent=2).splitlines()


def start(store: Store, **answers: CutoverEvidence | int | None) -> ServiceFixture:
    status = ExporterFlowStatus([*answers], Exporters(**answers))
    return start_service(store, flow_status=status, tokens=(READ, WRITE, OTHER))


def ask(
    service: ServiceFixture, caller: str = "r", path: str = PATH
) -> tuple[int, dict[str, object]]:
    response = service.client.get(path, headers={"Authorization": f"Bearer {caller}"})
    return response.status_code, response.json()


def failing(found: dict[str, object]) -> list[str]:
    checks = found["checks"]
    assert isinstance(checks, list)
    return [each["name"] for each in checks if each["result"] != "pass"]


def test_missing_phase_is_rejected_with_its_values(store: Store) -> None:
    status, found = ask(start(store, a=SAFE), path="/flows/us-to-eu/cutover")
    assert (status, found["parameter"], found["detail"]) == (422, "phase", "phase is missing")
    assert found["accepted"] == ["ready", "go"]


def test_everything_but_a_missing_audit_passes(store: Store) -> None:
    status, found = ask(start(store, one=SAFE))
    assert (status, found["verdict"], found["go"]) == (200, "unknown", False)
    assert failing(found) == ["audit"]
    assert found["as_of"] == "1970-01-01T02:46:40Z"


def test_waiver_needs_the_scope_write_and_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(store, one=SAFE)
    path = f"{PATH}&accept=audit%3Dchange%2042"
    weaker = ("&accept_redelivery=1", "&freeze=119s", "&accept=audit%3Dchange%2042")
    assert [ask(service, "r", PATH + each)[0] for each in weaker] == [403, 403, 403]
    assert ask(service, "r", PATH + "&freeze=121s")[0] == 200
    with caplog.at_level(logging.INFO, "mm2slo_report"):
        status, found = ask(service, "w", path)
    assert (status, found["go"]) == (200, True)
    assert "cutover of us->eu: ops accepts" in caplog.text
    assert "audit=change 42" in caplog.text


def test_replica_that_watched_longest_answers_and_one_without_the_flow_is_skipped(
    store: Store,
) -> None:
    short = replace(SAFE, watched_since=SAFE.watched_since + 50, state="stopped")
    assert failing(ask(start(store, short=short, none=404, long=SAFE))[1]) == ["audit"]
    unreadable = replace(SAFE, watched_since=0.0, unreadable=("us",))
    assert failing(ask(start(store, bad=unreadable, good=SAFE))[1]) == ["audit"]


def test_first_call_is_unknown_and_no_go(store: Store) -> None:
    status, found = ask(start(store, one=503))
    assert (status, found["go"]) == (200, False)
    checks = found["checks"]
    assert isinstance(checks, list)
    assert all(each["result"] != "pass" for each in checks)


def test_exporters_that_do_not_answer_are_a_problem(store: Store) -> None:
    assert ask(start(store, one=None))[0] == 504
    assert ask(start(store, one=500))[0] == 502
    assert ask(start(store, one=None, two=SAFE))[0] == 200


def test_token_of_other_flows_sees_no_such_flow(store: Store) -> None:
    status, found = ask(start(store, one=SAFE), "o")
    assert status == 404
    assert "us-to-eu" not in str(found.get("near"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("&freeze=soon", "'soon'"),
        ("&accept=lag%3Dx", "there is no check 'lag' in phase go"),
        ("&accept=audit", "expected CHECK=REASON"),
        ("&accept_redelivery=-1", "accept_redelivery"),
    ],
)
def test_invalid_parameters_are_refused(store: Store, query: str, message: str) -> None:
    status, found = ask(start(store, one=SAFE), "w", PATH + query)
    assert status == 422
    assert message in str(found)


def test_phase_is_required(store: Store) -> None:
    assert ask(start(store, one=SAFE), path="/flows/us-to-eu/cutover")[0] == 422
