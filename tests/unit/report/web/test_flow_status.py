"""`/flows` and failover readiness, from exporter metrics."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cutover_samples import SAFE
from minute_history import FLOW
from report_service_fixture import NOW, REVERSE_FLOW, ServiceFixture, start_service
from store_specs.sample_results import judged, orders_outcome, run_of

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.page_views import (
    FlowStatusView,
    GroupLag,
    GroupView,
    RecordBounds,
    RecordLag,
    ThroughputView,
    Unreplicated,
)
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web import http_responses
from mm2slo_report.web.flow_status import ExporterFlowStatus, flow_views, group_views, parse_samples
from mm2slo_store.store import Store

SIZE = ((1 << 40) + 9) / 5_000_000_003
"""Mean bytes of the source records in `orders_outcome`."""
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
mm2_failover_skipped_records{{{_OF},group="bad \\"}} \\\\ \\n one",bound="lower"}} 0
mm2_failover_skipped_records{{{_OF},group="bad \\"}} \\\\ \\n one",bound="upper"}} 7
mm2_failover_unreplicated_records{{{_OF}}} 1183
mm2_failover_unreplicated_seconds{{{_OF}}} 20.5
mm2_failover_unreplicated_age_seconds{{{_OF}}} 0.5
mm2_failover_group_unreplicated_records{{{_OF},group="orders"}} 29
mm2_failover_group_unreplicated_seconds{{{_OF},group="orders"}} 7.5
mm2_failover_commits_age_seconds{{{_OF},group="orders"}} 12.5
mm2_checkpoint_lag_records{{{_OF},group="orders",topic="a"}} 4
mm2_checkpoint_lag_records{{{_OF},group="orders",topic="b"}} 5
mm2_checkpoint_lag_records_other{{{_OF},group="orders",topic="b"}} 500
mm2_group_lag_records{{{_OF},cluster="us",group="orders",topic="a"}} 40
mm2_group_lag_records{{{_OF},cluster="us",group="orders",topic="b"}} 2
mm2_group_lag_seconds{{{_OF},cluster="us",group="orders",topic="a"}} 1.5
mm2_group_lag_seconds{{{_OF},cluster="us",group="orders",topic="b"}} 0.5
mm2_group_lag_records{{{_OF},cluster="eu",group="orders",topic="a"}} 7
mm2_group_lag_records{{{_OF},cluster="eu",group="orders",topic="b"}} 1
mm2_group_lag_seconds{{{_OF},cluster="eu",group="orders",topic="a"}} 3
mm2_flow_lag_records{{broken
mm2_flow_lag_records{{{_OF}}} none
""".splitlines()
BAD = 'bad "} \\ \n one'
REPLICA = [
    f'mm2_flow_state{{{_OF},state="unknown"}} 1',
    f"mm2_flow_lag_records{{{_OF}}} 20",
    f'mm2_failover_ready{{{_OF},group="orders"}} 0',
    f'mm2_failover_blocked{{{_OF},group="orders",reason="target_offset_expired"}} 1',
    f'mm2_checkpoint_lag_records{{{_OF},group="orders",topic="a"}} 6',
]


def test_flow_view_is_parsed_from_metrics() -> None:
    assert flow_views(parse_samples(PAGE)) == (
        FlowStatusView(
            flow=FLOW, state="running", lag_records=12, lag_seconds=0.25, headroom_seconds=700.5,
            unreplicated=Unreplicated(1183, 20.5, 0.5),
        ),
    )  # fmt: skip


def test_group_views_are_parsed_from_metrics() -> None:
    assert group_views(parse_samples(PAGE)) == (
        GroupView(
            flow=FLOW, group=BAD, ready=False, reasons=("checkpoint_stale",),
            skipped_records=RecordBounds(0, 7),
        ),
        GroupView(
            flow=FLOW, group="orders", ready=True, checkpoint_lag_records=9,
            redelivery_records=RecordBounds(3, 8), commits_age_seconds=12.5,
            unreplicated=RecordLag(29, 7.5),
            lag=GroupLag(RecordLag(42, 1.5), RecordLag(8, None)),
        ),
    )  # fmt: skip


def fetch(address: str, path: str = "/metrics") -> Iterator[str]:
    assert path == "/metrics"
    if address == "down":
        raise SliSourceError("exporter down did not respond", slow=True)
    yield from PAGE if address == "one" else REPLICA


def test_worst_replica_wins_and_failing_replica_is_skipped() -> None:
    for addresses in (["one", "down", "two"], ["two", "one", "down"]):
        both = ExporterFlowStatus(addresses, fetch)
        (flow,) = both.flows()
        assert (flow.state, flow.lag_records) == ("running", 20)
        orders = both.groups()[1]
        assert (orders.ready, orders.reasons) == (False, ("target_offset_expired",))
        assert orders.checkpoint_lag_records == 11
    with pytest.raises(SliSourceError, match="did not respond"):
        ExporterFlowStatus(["down"], fetch).groups()


class FixedFlows:
    def __init__(self, *views: FlowStatusView) -> None:
        self._views = views

    def cutover(self, flow: Flow) -> CutoverEvidence | None:
        return SAFE if flow.label == SAFE.flow else None

    def flows(self) -> tuple[FlowStatusView, ...]:
        return self._views

    def groups(self) -> tuple[GroupView, ...]:
        return ()


def counters(**totals: float) -> list[str]:
    """A page with counters of the source and of what was replicated, by topic."""
    lines = [f'mm2_flow_state{{{_OF},state="running"}} 1']
    for name, value in totals.items():
        counter, topic = name.rsplit("_", 1)
        lines.append(f'mm2_{counter}_records_total{{{_OF},topic="{topic}"}} {value}')
    return lines


def throughput(*pages: tuple[float, list[str]]) -> ThroughputView | None:
    """After readings of *pages* at these seconds."""
    at, page = 0.0, list[str]()
    status = ExporterFlowStatus(["one"], lambda _, path="": page, clock=lambda: at)
    found = None
    for at, page in pages:  # noqa: B007 - read by the functions above
        found = status.flows()[0].throughput
    return found


def test_throughput_is_growth_of_counters_between_readings_a_minute_apart() -> None:
    first = 0.0, counters(source_a=1000, source_b=50, replicated_a=900)
    second = 80.0, counters(source_a=1400, source_b=450, replicated_a=1060)
    assert throughput(first) is None
    assert throughput(first, (59.0, second[1])) is None
    assert throughput(first, second) == ThroughputView(80.0, 10.0, 2.0)
    assert throughput(first, second, (90.0, counters())) == ThroughputView(80.0, 10.0, 2.0)


def test_throughput_leaves_out_new_topics_and_reset_counters() -> None:
    first = 0.0, counters(source_a=1000, source_b=500, replicated_a=900)
    second = 100.0, counters(source_a=1300, source_b=3, source_c=7000, replicated_a=2)
    assert throughput(first, second) == ThroughputView(100.0, 3.0, None)


def test_flow_shows_bytes_per_second_by_record_size_of_newest_audit(tmp_path: Path) -> None:
    view = FlowStatusView(flow=FLOW, state="running", throughput=ThroughputView(80.0, 10.0, None))
    unaudited = {
        "between_readings_seconds": 80.0,
        "source_records_per_second": 10.0,
        "replicated_records_per_second": None,
        "source_bytes_per_second": None,
        "replicated_bytes_per_second": None,
        "record_size_bytes": None,
        "record_size_age_seconds": None,
    }
    with Store.open(tmp_path / "results.db", clock=lambda: NOW) as store:
        service = start_service(store, flow_status=FixedFlows(view))
        assert service.get("/flows/us-to-eu")["now"]["throughput"] == unaudited
        window = Window(NOW - 7_200_000, NOW - 3_600_000)
        store.publish(run_of("run", judged(orders_outcome(window))))
        assert service.get("/flows/us-to-eu")["now"]["throughput"] == {
            **unaudited,
            "source_bytes_per_second": 10.0 * SIZE,
            "record_size_bytes": SIZE,
            "record_size_age_seconds": 3600.0,
        }


@pytest.fixture
def service(store: Store) -> ServiceFixture:
    return start_service(store, flow_status=ExporterFlowStatus(["one"], fetch))


def test_flows_show_worst_status_and_counts(service: ServiceFixture) -> None:
    found = service.get("/flows")
    assert [(each["slug"], each["status"]) for each in found["flows"]] == [
        ("us-to-eu", "breached"), ("eu-to-us", "no_data"),
    ]  # fmt: skip
    assert found["flows"][0]["objectives"] == ["us-to-eu-availability", "us-to-eu-latency-10s"]
    assert found["flows"][0]["headline"]["breached"] == 1
    assert found["as_of"] == "2026-07-14T10:30:00Z"


def test_flow_by_slug_shows_current_state(service: ServiceFixture) -> None:
    found = service.get("/flows/us-to-eu")
    assert found["flow"]["name"] == FLOW.label
    assert found["now"] == {
        "state": "running", "lag_records": 12, "lag_seconds": 0.25, "headroom_seconds": 700.5,
        "throughput": None,
    }  # fmt: skip
    assert [each["status"] for each in found["entries"]] == ["breached", "met"]
    assert service.get("/flows/eu-to-us")["now"] is None
    assert service.get("/flows/eu->us")["flow"]["source"] == REVERSE_FLOW.source


def test_flow_as_of_a_past_instant_has_no_current_state(service: ServiceFixture) -> None:
    path = "/flows/us-to-eu?at=2026-07-14T"
    past = service.client.get(f"{path}09:30:00Z")
    assert (past.json()["now"], past.headers["cache-control"]) == (None, http_responses.PAST)
    assert service.get(f"{path}10:29:00Z")["now"] is None
    assert service.get(f"{path}10:30:00Z")["now"]["state"] == "running"


def test_unknown_flow_suggests_similar_slug(service: ServiceFixture) -> None:
    for path in ("/flows/us-to-ue", "/flows/us-to-ue/readiness"):
        response = service.client.get(path)
        assert (response.status_code, response.json()["near"]) == (404, ["us-to-eu"])


def test_readiness_lists_groups_that_are_not_ready_first(service: ServiceFixture) -> None:
    found = service.get("/flows/us-to-eu/readiness")
    assert (found["groups"], found["ready"]) == (2, 1)
    assert found["readiness"] == [
        {
            "group": BAD, "ready": False, "reasons": ["checkpoint_stale"],
            "checkpoint_lag_records": None, "redelivery_records": {"lower": None, "upper": None},
            "skipped_records": {"lower": 0, "upper": 7},
            "commits_age_seconds": None, "unreplicated": {"records": None, "seconds": None},
            "lag": {side: {"records": None, "seconds": None} for side in ("source", "target")},
        },
        {
            "group": "orders", "ready": True, "reasons": [], "checkpoint_lag_records": 9,
            "redelivery_records": {"lower": 3, "upper": 8}, "commits_age_seconds": 12.5,
            "skipped_records": {"lower": None, "upper": None},
            "unreplicated": {"records": 29, "seconds": 7.5},
            "lag": {
                "source": {"records": 42, "seconds": 1.5}, "target": {"records": 8, "seconds": None}
            },
        },
    ]  # fmt: skip
    assert found["unreplicated"] == {"records": 1183, "seconds": 20.5, "age_seconds": 0.5}
    other = service.get("/flows/eu-to-us/readiness")
    assert other["readiness"] == []
    assert other["unreplicated"] == {"records": None, "seconds": None, "age_seconds": None}


def test_readiness_without_exporter_is_503_but_flows_are_served(store: Store) -> None:
    service = start_service(store)
    response = service.client.get("/flows/us-to-eu/readiness")
    assert (response.status_code, response.json()["type"]) == (
        503,
        "urn:mm2slo:problem:no-exporter",
    )
    assert service.get("/flows/us-to-eu")["now"] is None
    down = start_service(store, flow_status=ExporterFlowStatus(["down"], fetch))
    assert down.client.get("/flows/us-to-eu/readiness").status_code == 504
    assert down.get("/flows/us-to-eu")["now"] is None
    page = down.client.get("/")
    assert page.status_code == 200
    assert "exporter down did not respond" in page.text


def test_group_name_on_status_page_is_escaped(store: Store) -> None:
    lines = [f'mm2_failover_ready{{{_OF},group="<script>alert(1)</script>"}} 0']
    page = start_service(store, flow_status=ExporterFlowStatus(["x"], lambda _, path="": lines))
    text = page.client.get("/").text
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
