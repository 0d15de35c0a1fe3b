"""`/exclusions`: planned maintenance and its effect on reports."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from report_service_fixture import (
    NOT_APPLIED,
    NOW,
    OUTAGE,
    ServiceFixture,
    sample_source,
    start_service,
)

from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.reporting.step_counts import MINUTE_MS
from mm2slo_core.user_errors import UserError
from mm2slo_report.access_tokens import AccessToken, Scope
from mm2slo_store.store import Store

WRITER = {"Authorization": "Bearer w"}
TOKEN = AccessToken(hashlib.sha256(b"w").hexdigest(), Scope.WRITE, "ops")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db", clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def service(store: Store) -> ServiceFixture:
    found = start_service(store, sample_source(), tokens=(TOKEN,), cache_seconds=30.0)
    found.client.headers.update(WRITER)
    return found


def exclusion_body(**changes: Any) -> dict[str, Any]:
    return {
        "flows": ["us->*"],
        "from": utc_text(OUTAGE - MINUTE_MS),
        "to": utc_text(OUTAGE + 10 * MINUTE_MS),
        "reason": "upgrade <b>",
        **changes,
    }


def test_added_exclusion_applies_to_reports_immediately(service: ServiceFixture) -> None:
    before = service.get("/slo")["entries"][0]
    assert (before["status"], before["events"]["bad"]) == ("breached", 360)
    response = service.client.post("/exclusions", json=exclusion_body())
    added = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/exclusions/{added['id']}"
    assert (added["flows"], added["added_by"], added["state"]) == (["us->*"], "ops", "past")
    assert added["mark"] == "added late"
    entry = next(
        each for each in service.get("/slo")["entries"] if each["id"] == "us-to-eu-availability"
    )
    assert (entry["status"], entry["sli_ratio"]) == ("met", 1.0)
    assert (entry["events"]["bad"], entry["events"]["excluded"]) == (0, 900), "in whole steps"
    assert added.pop("effects") == {"done": [], "problems": [NOT_APPLIED]}
    assert service.get("/exclusions") == {"exclusions": [added]}


def test_running_maintenance_is_past_once_it_was_removed(
    service: ServiceFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = exclusion_body(to=utc_text(NOW + 60 * MINUTE_MS))
    added = service.client.post("/exclusions", json=body).json()
    assert added["state"] == "running"
    service.clock[0], remove = NOW - 1, service.store.remove_exclusion

    def remove_later(exclusion: str, *, who: str) -> Any:
        service.clock[0] = NOW
        return remove(exclusion, who=who)

    monkeypatch.setattr(service.store, "remove_exclusion", remove_later)
    assert service.client.delete(f"/exclusions/{added['id']}").json()["state"] == "past"


def test_removed_exclusion_counts_again_and_stays_listed(service: ServiceFixture) -> None:
    added = service.client.post("/exclusions", json=exclusion_body()).json()
    response = service.client.delete(f"/exclusions/{added['id']}")
    assert (response.status_code, response.json()["removed_by"]) == (200, "ops")
    assert response.json()["state"] == "removed"
    assert service.get("/slo")["entries"][0]["events"]["bad"] == 360
    again = service.client.delete(f"/exclusions/{added['id']}")
    assert (again.status_code, again.json()["type"]) == (409, "urn:mm2slo:problem:already-removed")
    assert len(service.get("/exclusions?state=removed")["exclusions"]) == 1
    assert service.get("/exclusions?state=planned,running")["exclusions"] == []


def test_exclusion_removed_by_two_processes_at_once_is_a_conflict(
    service: ServiceFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = service.client.post("/exclusions", json=exclusion_body()).json()
    store = service.store
    before = store.exclusions()
    store.remove_exclusion(added["id"], who="ben")
    # The other process removes it after this one has read it.
    monkeypatch.setattr(store, "exclusions", lambda: before)
    response = service.client.delete(f"/exclusions/{added['id']}")
    assert (response.status_code, response.json()["type"]) == (
        409, "urn:mm2slo:problem:already-removed",
    )  # fmt: skip


def test_removing_unknown_exclusion_returns_404_with_suggestion(service: ServiceFixture) -> None:
    added = service.client.post("/exclusions", json=exclusion_body()).json()["id"]
    response = service.client.delete(f"/exclusions/{added[:-1]}x")
    assert (response.status_code, response.json()["near"]) == (404, [added])


def test_overlapping_exclusion_is_rejected(service: ServiceFixture) -> None:
    first = service.client.post("/exclusions", json=exclusion_body()).json()
    response = service.client.post("/exclusions", json=exclusion_body(flows=["*"]))
    assert (response.status_code, response.json()["existing"]) == (409, first["id"])
    assert (
        service.client.post("/exclusions", json=exclusion_body(flows=["eu->us"])).status_code == 201
    )
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
        (exclusion_body(more=1), "body"),
        (exclusion_body(flows=[]), "flows"),
        (exclusion_body(flows="us->eu"), "flows"),
        (exclusion_body(flows=["us->ue"]), "flows"),
        (exclusion_body(flows=[7]), "flows"),
        (exclusion_body(flows=["us->eu"] * 101), "flows"),
        (exclusion_body(flows=["[\ud800u]s->eu"]), "body"),
        (exclusion_body(flows=["us->eu\n"]), "flows"),
        (exclusion_body(flows=["*" * 201]), "flows"),
        (exclusion_body(silence="yes"), "silence"),
        (exclusion_body(silence=True), "silence"),
        (exclusion_body(to=utc_text(OUTAGE - MINUTE_MS)), "to"),
        (exclusion_body(to=utc_text(OUTAGE + 11_000 * MINUTE_MS)), "to"),
        ({**exclusion_body(), "from": "soon"}, "from"),
        ({**exclusion_body(), "from": 7}, "from"),
        (
            {**exclusion_body(to="9999-12-31T23:59:00-10:00"), "from": "9999-12-31T22:59:00-10:00"},
            "from",
        ),
        (exclusion_body(reason="  "), "reason"),
        (exclusion_body(reason="x" * 201), "reason"),
        (exclusion_body(reason="a\x00b"), "reason"),
        (exclusion_body(reason=None), "reason"),
    ],
)
def test_invalid_exclusion_is_rejected_without_effect(
    service: ServiceFixture, content: Any, parameter: str
) -> None:
    body = content if isinstance(content, str) else json.dumps(content)
    headers = {"Content-Type": "application/json"}
    response = service.client.post("/exclusions", content=body, headers=headers)
    assert (response.status_code, response.json()["parameter"]) == (422, parameter)
    assert service.get("/exclusions") == {"exclusions": []}


def test_exclusion_body_must_be_json(service: ServiceFixture) -> None:
    response = service.client.post(
        "/exclusions", content=json.dumps(exclusion_body()), headers={"Content-Type": "text/plain"}
    )
    assert response.status_code == 415


class FailingStore:
    """A store whose database always fails."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: object, **__: object) -> None:
            raise UserError("the store results.db is corrupt: restore it from a copy")

        return refuse


def test_unreadable_store_returns_503_and_not_ready() -> None:
    service = start_service(cast("Store", FailingStore()), sample_source())
    for path in ("/exclusions", "/audits", "/audits/x", "/slo", "/readyz", "/metrics", "/"):
        response = service.client.get(path)
        assert (path, response.status_code) == (path, 503)
        shown = (
            "the results store is unavailable" if path == "/readyz" else "is corrupt: restore it"
        )
        assert shown in response.text
    assert service.client.get("/exclusions").json()["type"] == "urn:mm2slo:problem:store"
    assert service.client.get("/healthz").status_code == 200
