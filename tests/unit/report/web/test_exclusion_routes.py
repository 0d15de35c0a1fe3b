"""`/exclusions`: planned maintenance and its effect on reports."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from serving import NOW, OUTAGE, Served, a_source, served

from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_core.user_errors import UserError
from mm2slo_report.rendering.value_format import utc
from mm2slo_report.web.report_only_maintenance import RULES_NOT_WRITTEN
from mm2slo_report.web.tokens import Scope, Token
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITER = {"Authorization": "Bearer w"}
TOKEN = Token(hashlib.sha256(b"w").hexdigest(), Scope.WRITE, "ops")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db", clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def service(store: Store) -> Served:
    found = served(store, a_source(), tokens=(TOKEN,), cache_seconds=30.0)
    found.client.headers.update(WRITER)
    return found


def wanted(**changes: Any) -> dict[str, Any]:
    return {
        "flows": ["us->*"],
        "from": utc(OUTAGE - MINUTE_MS),
        "to": utc(OUTAGE + 10 * MINUTE_MS),
        "reason": "upgrade <b>",
        **changes,
    }


def test_added_exclusion_applies_to_reports_immediately(service: Served) -> None:
    before = service.get("/slo")["entries"][0]
    assert (before["status"], before["events"]["bad"]) == ("breached", 360)
    answer = service.client.post("/exclusions", json=wanted())
    added = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/exclusions/{added['id']}"
    assert (added["flows"], added["added_by"], added["state"]) == (["us->*"], "ops", "past")
    assert added["mark"] == "added late"
    entry = next(
        each for each in service.get("/slo")["entries"] if each["id"] == "us-to-eu-availability"
    )
    assert (entry["status"], entry["sli_value"]) == ("ok", 1.0)
    assert (entry["events"]["bad"], entry["events"]["excluded"]) == (0, 660)
    assert added.pop("effects") == {"done": [], "problems": [RULES_NOT_WRITTEN]}
    assert service.get("/exclusions") == {"exclusions": [added]}


def test_removed_exclusion_counts_again_and_stays_listed(service: Served) -> None:
    added = service.client.post("/exclusions", json=wanted()).json()
    answer = service.client.delete(f"/exclusions/{added['id']}")
    assert (answer.status_code, answer.json()["removed_by"]) == (200, "ops")
    assert answer.json()["state"] == "removed"
    assert service.get("/slo")["entries"][0]["events"]["bad"] == 360
    again = service.client.delete(f"/exclusions/{added['id']}")
    assert (again.status_code, again.json()["type"]) == (409, "urn:mm2slo:problem:already-removed")
    assert len(service.get("/exclusions?state=removed")["exclusions"]) == 1
    assert service.get("/exclusions?state=planned,running")["exclusions"] == []


def test_removing_unknown_exclusion_returns_404_with_suggestion(service: Served) -> None:
    added = service.client.post("/exclusions", json=wanted()).json()["id"]
    answer = service.client.delete(f"/exclusions/{added[:-1]}x")
    assert (answer.status_code, answer.json()["near"]) == (404, [added])


def test_overlapping_exclusion_is_rejected(service: Served) -> None:
    first = service.client.post("/exclusions", json=wanted()).json()
    answer = service.client.post("/exclusions", json=wanted(flows=["*"]))
    assert (answer.status_code, answer.json()["existing"]) == (409, first["id"])
    assert service.client.post("/exclusions", json=wanted(flows=["eu->us"])).status_code == 201
    assert [len(service.get(f"/exclusions?flow={flow}")["exclusions"])
            for flow in ("us->eu", "eu->us")] == [1, 1]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "parameter"),
    [
        ("", "body"),
        ("[]", "body"),
        ("{", "body"),
        ("[" * 60_000, "body"),
        ('{"flows": []}', "body"),
        (wanted(more=1), "body"),
        (wanted(flows=[]), "flows"),
        (wanted(flows="us->eu"), "flows"),
        (wanted(flows=["us->ue"]), "flows"),
        (wanted(flows=[7]), "flows"),
        (wanted(flows=["us->eu"] * 101), "flows"),
        (wanted(flows=["[\ud800u]s->eu"]), "flows"),
        (wanted(flows=["*" * 201]), "flows"),
        (wanted(silence="yes"), "silence"),
        (wanted(silence=True), "silence"),
        (wanted(to=utc(OUTAGE - MINUTE_MS)), "to"),
        (wanted(to=utc(OUTAGE + 11_000 * MINUTE_MS)), "to"),
        ({**wanted(), "from": "soon"}, "from"),
        ({**wanted(), "from": 7}, "from"),
        (
            {**wanted(to="9999-12-31T23:59:00-10:00"), "from": "9999-12-31T22:59:00-10:00"},
            "from",
        ),
        (wanted(reason="  "), "reason"),
        (wanted(reason="x" * 201), "reason"),
        (wanted(reason="a\x00b"), "reason"),
        (wanted(reason=None), "reason"),
    ],
)
def test_invalid_exclusion_is_rejected_without_effect(
    service: Served, content: Any, parameter: str
) -> None:
    body = content if isinstance(content, str) else json.dumps(content)
    headers = {"Content-Type": "application/json"}
    answer = service.client.post("/exclusions", content=body, headers=headers)
    assert (answer.status_code, answer.json()["parameter"]) == (422, parameter)
    assert service.get("/exclusions") == {"exclusions": []}


def test_exclusion_body_must_be_json(service: Served) -> None:
    answer = service.client.post(
        "/exclusions", content=json.dumps(wanted()), headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 415


class FailingStore:
    """A store whose database always fails."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: object, **__: object) -> None:
            raise UserError("the store results.db is corrupt: restore it from a copy")

        return refuse


def test_unreadable_store_returns_503_and_not_ready() -> None:
    service = served(cast("Store", FailingStore()), a_source())
    for path in ("/exclusions", "/audits", "/audits/x", "/slo", "/readyz", "/metrics", "/"):
        answer = service.client.get(path)
        assert (path, answer.status_code) == (path, 503)
        assert "is corrupt: restore it" in answer.text
    assert service.client.get("/exclusions").json()["type"] == "urn:mm2slo:problem:store"
    assert service.client.get("/healthz").status_code == 200
