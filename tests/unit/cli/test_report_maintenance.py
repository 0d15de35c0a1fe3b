"""Exclusions over HTTP: rule file, Prometheus reload and silences."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from recording_server import Answer, RecordingServer, Request
from report_service_fixture import NOW, ServiceFixture, start_service

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.report_serve import RULES_NOT_WRITTEN, MaintenanceActions
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.reporting.step_counts import MINUTE_MS
from mm2slo_report.access_tokens import AccessToken, Scope
from mm2slo_store.store import Store

TOKEN = AccessToken(
    "50e721e49c013f00c62cf59f2163542a9d8df02464efeb615d31051b0fddc326", Scope.WRITE, "ops"
)
"""Hash of the token `w`."""
CONFIG = """
clusters: {{us: {{bootstrap_servers: "127.0.0.1:1"}}, eu: {{bootstrap_servers: "127.0.0.1:2"}}}}
flows: [{{flow: us->eu}}, {{flow: eu->us}}]
alerting: {alerting}
"""
HINT = "set alerting.links.prometheus"
START, END = NOW + 60 * MINUTE_MS, NOW + 120 * MINUTE_MS


@dataclass
class FakeServers:
    """Prometheus and Alertmanager at one address, with recorded requests."""

    requests: list[Request] = field(default_factory=list)
    rules: Any = None
    silence: Any = field(default_factory=lambda: {"silenceID": "s-1"})
    address: str = ""

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        content: Any = None
        if request.path == "/api/v2/silences":
            content = self.silence
        elif request.path.startswith("/api/v2/silence/"):
            content = {"status": {"state": "active"}}
        elif request.path.startswith("/api/v1/rules"):
            content = self.rules
        return Answer(body="" if content is None else json.dumps(content))

    @property
    def lines(self) -> list[str]:
        """Methods and paths of the requests."""
        return [f"{each.method} {each.path}" for each in self.requests]


@contextmanager
def fake_servers() -> Iterator[FakeServers]:
    found = FakeServers()
    with RecordingServer(found.answer) as server:
        found.address = server.address
        yield found


@contextmanager
def service(folder: Path, **alerting: Any) -> Iterator[ServiceFixture]:
    path = folder / "mm2slo.yaml"
    path.write_text(CONFIG.format(alerting=json.dumps(alerting)))
    with Store.open(folder / "r.db", clock=lambda: NOW) as store:
        maintenance = MaintenanceActions(read_config(ConfigSource(path)), store)
        found = start_service(store, tokens=(TOKEN,), maintenance=maintenance)
        found.client.headers["Authorization"] = "Bearer w"
        yield found


def add(start_service: ServiceFixture, **more: Any) -> Any:
    given = {
        "flows": ["us->*"],
        "from": utc_text(START),
        "to": utc_text(END),
        "reason": "upgrade",
        **more,
    }
    return start_service.client.post("/exclusions", json=given)


def expressions(path: Path) -> list[str]:
    found = yaml.safe_load(path.read_text())["groups"] or ()
    return [rule["expr"] for group in found for rule in group["rules"]]


def test_exclusion_without_rule_file_reports_unwritten_rules(tmp_path: Path) -> None:
    with service(tmp_path) as found:
        answer = add(found).json()
        assert answer["effects"] == {"done": [], "problems": [RULES_NOT_WRITTEN]}
        removed = found.client.delete(f"/exclusions/{answer['id']}").json()
        assert removed["effects"]["problems"] == [RULES_NOT_WRITTEN]
    assert [each.name for each in tmp_path.glob("*.yml")] == []


def test_exclusion_added_and_removed_updates_rule_file(tmp_path: Path) -> None:
    rules = tmp_path / "maintenance.yml"
    with service(tmp_path, maintenance={"rules_file": str(rules)}) as found:
        answer = add(found).json()
        assert answer["effects"] == {
            "done": [
                f"1 rule in {rules}",
                f"Prometheus loads it at its next reload: {HINT}, or send it SIGHUP",
            ],
            "problems": [],
        }
        (expression,) = expressions(rules)
        assert f">= {START // 1000}" in expression
        found.client.delete(f"/exclusions/{answer['id']}")
        assert expressions(rules) == []


def test_exclusion_with_unwritable_rule_file_is_stored_with_problem(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "maintenance.yml"
    with service(tmp_path, maintenance={"rules_file": str(nowhere)}) as found:
        answer = add(found)
        assert answer.status_code == 201
        (problem,) = answer.json()["effects"]["problems"]
        assert problem.startswith(f"cannot write rule file {nowhere}: No such file")
        assert len(found.get("/exclusions")["exclusions"]) == 1


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (None, "returned an unexpected list of rules"),
        ({"data": {"groups": []}}, "was reloaded but has not loaded the rule file"),
        (
            # Prometheus leaves out the labels of a rule that has none.
            {"data": {"groups": [{"rules": [{"name": "job:up:sum", "query": "sum(up)"}]}]}},
            "was reloaded but has not loaded the rule file",
        ),
    ],
)
def test_exclusion_reloads_prometheus_and_checks_loaded_rules(
    tmp_path: Path, rules: Any, expected: str
) -> None:
    with fake_servers() as servers:
        servers.rules = rules
        settings = {
            "maintenance": {"rules_file": str(tmp_path / "m.yml")},
            "links": {"prometheus": servers.address},
        }
        with service(tmp_path, **settings) as found:
            (problem,) = add(found).json()["effects"]["problems"]
    assert expected in problem
    assert servers.lines == ["POST /-/reload", "GET /api/v1/rules?type=record"]


def test_exclusion_with_silence_creates_and_expires_it(tmp_path: Path) -> None:
    with (
        fake_servers() as servers,
        service(tmp_path, links={"alertmanager": servers.address}) as found,
    ):
        answer = add(found, silence=True).json()
        assert answer["silence"] == "s-1"
        assert servers.lines == ["POST /api/v2/silences"]
        body = json.loads(servers.requests[0].body)
        assert (body["createdBy"], body["matchers"][0]["value"]) == ("ops", "us->eu")
        removed = found.client.delete(f"/exclusions/{answer['id']}").json()
        assert removed["effects"]["done"] == ["silence s-1 ended"]
        assert servers.lines[-1] == "DELETE /api/v2/silence/s-1"


def test_configured_silence_is_created_unless_request_disables_it(tmp_path: Path) -> None:
    with fake_servers() as servers:
        settings = {
            "maintenance": {"silence": True}, "links": {"alertmanager": servers.address},
        }  # fmt: skip
        with service(tmp_path, **settings) as found:
            assert add(found, flows=["eu->us"], silence=False).json()["silence"] is None
            assert servers.requests == []
            assert add(found).json()["silence"] == "s-1"
            servers.silence = ["nonsense"]
            later = {"from": utc_text(END), "to": utc_text(END + 10 * MINUTE_MS)}
            answer = add(found, **later).json()
            assert answer["silence"] is None
            problem = answer["effects"]["problems"][0]
            assert "no silence was created" in problem
            assert "amtool silence add" in problem
            past = {"from": utc_text(NOW - 20 * MINUTE_MS), "to": utc_text(NOW - 10 * MINUTE_MS)}
            problem = add(found, **past).json()["effects"]["problems"][0]
            assert problem.startswith("no silence was created: it is too late")


def test_silence_without_alertmanager_is_rejected_and_nothing_is_stored(tmp_path: Path) -> None:
    with service(tmp_path) as found:
        answer = add(found, silence=True)
        assert (answer.status_code, answer.json()["parameter"]) == (422, "silence")
        assert "needs Alertmanager's URL" in answer.json()["detail"]
        assert found.get("/exclusions") == {"exclusions": []}
