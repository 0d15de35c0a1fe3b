"""`/flows` and failover readiness, as an exporter's page says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from reported import FLOW
from serving import BACK, served

from mm2slo_report.rendering.views import FlowView, GroupView
from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.web.surroundings import (
    ExporterSurroundings,
    flow_views,
    group_views,
    samples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from serving import Served

    from mm2slo_store import Store

_OF = 'flow="us->eu",source="us",target="eu"'
PAGE = f"""\
# HELP mm2_flow_state 1 for the state the flow is in.
# TYPE mm2_flow_state gauge
mm2_flow_state{{{_OF},state="running"}} 1
mm2_flow_state{{{_OF},state="stopped"}} 0
mm2_flow_lag_records{{{_OF}}} 12
mm2_flow_lag_seconds{{{_OF}}} 0.25
mm2_retention_headroom_seconds{{{_OF},topic="a",limit="time"}} 9000
mm2_retention_headroom_seconds{{{_OF},topic="b",limit="time"}} 700.5
mm2_failover_ready{{{_OF},group="orders"}} 1
mm2_failover_ready{{{_OF},group="bad \\"}} \\\\ \\n one"}} 0
mm2_failover_blocked{{{_OF},group="bad \\"}} \\\\ \\n one",reason="checkpoint_stale"}} 1
mm2_failover_blocked{{{_OF},group="bad \\"}} \\\\ \\n one",reason="no_checkpoint"}} 0
mm2_failover_redelivery_records{{{_OF},group="orders",bound="lower"}} 3
mm2_failover_redelivery_records{{{_OF},group="orders",bound="upper"}} 8
mm2_checkpoint_lag_records{{{_OF},group="orders",topic="a"}} 4
mm2_checkpoint_lag_records{{{_OF},group="orders",topic="b"}} 5
mm2_checkpoint_lag_records_other{{{_OF},group="orders",topic="b"}} 500
mm2_flow_lag_records{{broken
mm2_flow_lag_records{{{_OF}}} none
""".splitlines()
BAD = 'bad "} \\ \n one'
REPLICA = [
    f'mm2_flow_state{{{_OF},state="unknown"}} 1',
    f"mm2_flow_lag_records{{{_OF}}} 20",
    f'mm2_failover_ready{{{_OF},group="orders"}} 0',
    f'mm2_failover_blocked{{{_OF},group="orders",reason="flow_not_alive"}} 1',
    f'mm2_checkpoint_lag_records{{{_OF},group="orders",topic="a"}} 6',
]


def test_a_page_tells_how_a_flow_is() -> None:
    assert flow_views(samples(PAGE)) == (
        FlowView(
            flow=FLOW, state="running", lag_records=12, lag_seconds=0.25, headroom_seconds=700.5
        ),
    )


def test_a_page_tells_what_groups_would_find() -> None:
    assert group_views(samples(PAGE)) == (
        GroupView(flow=FLOW, group=BAD, ready=False, reasons=("checkpoint_stale",)),
        GroupView(
            flow=FLOW, group="orders", ready=True, checkpoint_lag=9, redelivery_lower=3,
            redelivery_upper=8,
        ),
    )  # fmt: skip


def fetch(address: str) -> Iterator[str]:
    if address == "down":
        raise SliSourceError("the exporter down does not answer", slow=True)
    yield from PAGE if address == "one" else REPLICA


def test_of_replicas_the_worse_verdict_holds_and_one_that_is_down_is_passed_over() -> None:
    for addresses in (["one", "down", "two"], ["two", "one", "down"]):
        both = ExporterSurroundings(addresses, fetch)
        (flow,) = both.flows()
        assert (flow.state, flow.lag_records) == ("running", 20)
        orders = both.groups()[1]
        assert (orders.ready, orders.reasons) == (False, ("flow_not_alive",))
        assert orders.checkpoint_lag == 11
    with pytest.raises(SliSourceError, match="does not answer"):
        ExporterSurroundings(["down"], fetch).groups()


@pytest.fixture
def service(store: Store) -> Served:
    return served(store, surroundings=ExporterSurroundings(["one"], fetch))


def test_flows_tell_how_their_objectives_stand(service: Served) -> None:
    found = service.get("/flows")
    assert [(each["slug"], each["status"]) for each in found["flows"]] == [
        ("us-to-eu", "breached"), ("eu-to-us", "no_data"),
    ]  # fmt: skip
    assert found["flows"][0]["objectives"] == ["us-to-eu-availability", "us-to-eu-latency-10s"]
    assert found["flows"][0]["headline"]["breached"] == 1
    assert found["as_of"] == "2026-07-14T10:30:00Z"


def test_one_flow_by_its_slug_with_how_it_is_now(service: Served) -> None:
    found = service.get("/flows/us-to-eu")
    assert found["flow"]["name"] == FLOW.label
    assert found["now"] == {
        "state": "running", "lag_records": 12, "lag_seconds": 0.25, "headroom_seconds": 700.5,
    }  # fmt: skip
    assert [each["status"] for each in found["entries"]] == ["breached", "ok"]
    assert service.get("/flows/eu-to-us")["now"] is None
    assert service.get("/flows/eu->us")["flow"]["source"] == BACK.source


def test_an_unknown_flow_is_told_with_a_near_one(service: Served) -> None:
    for path in ("/flows/us-to-ue", "/flows/us-to-ue/readiness"):
        answer = service.client.get(path)
        assert (answer.status_code, answer.json()["near"]) == (404, ["us-to-eu"])


def test_readiness_has_the_groups_that_are_not_ready_first(service: Served) -> None:
    found = service.get("/flows/us-to-eu/readiness")
    assert (found["groups"], found["ready"]) == (2, 1)
    assert found["readiness"] == [
        {
            "group": BAD, "ready": False, "reasons": ["checkpoint_stale"],
            "checkpoint_lag_records": None, "redelivery_records": {"lower": None, "upper": None},
        },
        {
            "group": "orders", "ready": True, "reasons": [], "checkpoint_lag_records": 9,
            "redelivery_records": {"lower": 3, "upper": 8},
        },
    ]  # fmt: skip
    assert service.get("/flows/eu-to-us/readiness")["readiness"] == []


def test_without_an_exporter_readiness_is_unavailable_and_flows_are_not(store: Store) -> None:
    alone = served(store)
    answer = alone.client.get("/flows/us-to-eu/readiness")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:mm2slo:problem:no-exporter")
    assert alone.get("/flows/us-to-eu")["now"] is None
    down = served(store, surroundings=ExporterSurroundings(["down"], fetch))
    assert down.client.get("/flows/us-to-eu/readiness").status_code == 504
    assert down.get("/flows/us-to-eu")["now"] is None
    page = down.client.get("/")
    assert page.status_code == 200
    assert "the exporter down does not answer" in page.text


def test_a_group_on_the_page_is_escaped(store: Store) -> None:
    lines = [f'mm2_failover_ready{{{_OF},group="<script>alert(1)</script>"}} 0']
    page = served(store, surroundings=ExporterSurroundings(["x"], lambda _: lines))
    text = page.client.get("/").text
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
