"""`/audits`, paginated evidence, and metrics of audits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families
from report_service_fixture import NOW, ServiceFixture, sample_source, start_service
from sqlalchemy import insert
from store_specs.sample_results import evidence, header, judged, orders_outcome, run_of, unjudged

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.catalogue import BY_NAME
from mm2slo_core.catalogue.service_metrics import REPORT_GROUPS
from mm2slo_report.recording.recorder_history import RecorderHealth, TargetHealth
from mm2slo_report.web.request_checks import PageCursor, encode_cursor
from mm2slo_store import store_schema
from mm2slo_store.audit_rows import Run, RunState
from mm2slo_store.row_conversion import run_row
from mm2slo_store.store import Store

HOUR = 3_600_000
LOST = [evidence(Verdict.LOST, offset) for offset in range(250)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Three runs of an hour each; the second has 250 lost records, the third failed."""
    with Store.open(tmp_path_factory.mktemp("audits") / "r.db", clock=lambda: NOW) as opened:
        for number, found in enumerate(([], LOST)):
            window = Window(NOW - (9 - number) * HOUR, NOW - (8 - number) * HOUR)
            opened.publish(
                run_of(
                    f"run-{number}",
                    judged(orders_outcome(window, found=found)),
                    unjudged(window, "payments"),
                    started_at=NOW - (8 - number) * HOUR,
                )
            )
        failed = header("run-2", Window(NOW - HOUR, NOW), NOW)
        opened.announce(failed)
        opened.fail(failed, "Spark <did> not start")
        yield opened


@pytest.fixture
def service(store: Store) -> ServiceFixture:
    return start_service(store, sample_source())


def test_audits_are_listed_newest_first_in_pages(service: ServiceFixture) -> None:
    first = service.get("/audits?limit=2")
    assert [(each["id"], each["state"]) for each in first["runs"]] == [
        ("run-2", "failed"), ("run-1", "finished"),
    ]  # fmt: skip
    assert first["total"] == 3
    assert first["runs"][0]["verdict"] == "Spark <did> not start"
    second = service.get(f"/audits?limit=2&cursor={first['next']}")
    assert ([each["id"] for each in second["runs"]], second["next"]) == (["run-0"], None)
    assert service.get("/audits?flow=us->eu")["total"] == 3
    assert service.get("/audits?flow=eu->us")["total"] == 0


def test_audit_run_lists_topics_with_counts_or_reason(service: ServiceFixture) -> None:
    found = service.get("/audits/run-1")
    assert found["window"] == {
        "start": "2026-07-14T02:30:12.345Z",
        "end": "2026-07-14T03:30:12.345Z",
    }
    orders, payments = found["topics"]
    assert (orders["topic"], orders["counts"]["matched"], orders["counts"]["lost"]) == (
        "orders", 5_000_000_001, 2,
    )  # fmt: skip
    assert (orders["faults"], orders["not_audited"]) == (2, None)
    assert orders["sources"] == [
        {"flow": "us->eu", "topic": "orders"}, {"flow": "ap->eu", "topic": "orders-ap"},
    ]  # fmt: skip
    assert orders["bounds"][0]["sentence"] == "loss is 0% (95 %: 0% to 0.03%)"
    assert payments["not_audited"]["reason"] == "leased"
    assert payments["faults"] == 0


def test_evidence_pages_have_no_gaps(service: ServiceFixture) -> None:
    seen, path = [], "/audits/run-1/evidence?verdict=lost&limit=100"
    page = service.get(path)
    while True:
        seen += [each["offset"] for each in page["evidence"]]
        if page["next"] is None:
            break
        page = service.get(f"{path}&cursor={page['next']}")
    assert seen == list(range(250))
    assert page["evidence"][0]["verdict"] == "lost"
    assert page["evidence"][0]["fingerprint"] == f"{(1 << 64) - 201:016x}"
    # Includes the two anomalies of every outcome here.
    assert len(service.get("/audits/run-1/evidence?limit=1000")["evidence"]) == 252
    assert service.get("/audits/run-0/evidence?verdict=lost") == {
        "run": "run-0", "evidence": [], "next": None,
    }  # fmt: skip


def test_evidence_page_continues_after_superseded_topic(tmp_path: Path) -> None:
    window, lost = Window(NOW - HOUR, NOW), LOST[:3]
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        alpha, beta = (
            judged(orders_outcome(window, topic=each, found=lost)) for each in ("alpha", "beta")
        )
        store.publish(run_of("both", alpha, beta))
        service = start_service(store, sample_source())
        path = "/audits/both/evidence?verdict=lost&limit=4"
        first = service.get(path)
        store.publish(run_of("later", alpha))
        second = service.get(f"{path}&cursor={first['next']}")
        assert [(each["topic"], each["offset"]) for each in second["evidence"]] == [
            ("beta", 1), ("beta", 2),
        ]  # fmt: skip
        assert second["next"] is None


def test_evidence_time_beyond_dates_is_null(tmp_path: Path) -> None:
    lost = [evidence(Verdict.LOST, each, timestamp=(1 << 63) - each) for each in (1, 2)]
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        store.publish(run_of("far", judged(orders_outcome(Window(NOW - HOUR, NOW), found=lost))))
        service = start_service(store, sample_source())
        found = service.get("/audits/far/evidence?verdict=lost")["evidence"]
        assert [(each["offset"], each["timestamp"]) for each in found] == [(1, None), (2, None)]


def test_unknown_audit_run_suggests_similar_id(service: ServiceFixture) -> None:
    for path in ("/audits/run-7", "/audits/run-7/evidence", "/audits/run-7%00"):
        response = service.client.get(path)
        assert response.status_code == 404
        assert response.json()["near"][0].startswith("run-")


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/audits?limit=0", "limit"),
        ("/audits?cursor=x", "cursor"),
        ("/audits?flow=us", "flow"),
        ("/audits/run-1/evidence?verdict=stolen", "verdict"),
        ("/audits/run-1/evidence?cursor=W10", "cursor"),
    ],
)
def test_invalid_audit_parameters_are_rejected(
    service: ServiceFixture, path: str, parameter: str
) -> None:
    response = service.client.get(path)
    assert (response.status_code, response.json()["parameter"]) == (422, parameter)


def test_run_cursor_is_invalid_for_evidence(service: ServiceFixture) -> None:
    for after in ("run-0", "1", "0/-1", "0/" + "9" * 30, "0/1e3", "0/1\n", "0/\u0663"):
        cursor = encode_cursor(PageCursor(after), {"run": "run-1", "verdict": []})
        response = service.client.get(f"/audits/run-1/evidence?cursor={cursor}")
        assert (after, response.status_code) == (after, 422)


def test_audits_page_continues_after_superseded_run(service: ServiceFixture) -> None:
    gone = encode_cursor(PageCursor("run-1x", NOW - 7 * HOUR), {"flow": []})
    found = service.get(f"/audits?cursor={gone}")
    assert [each["id"] for each in found["runs"]] == ["run-1", "run-0"]
    bad = encode_cursor(PageCursor("run\x00", NOW), {"flow": []})
    assert service.client.get(f"/audits?cursor={bad}").status_code == 422


def test_audit_faults_appear_in_entries_of_the_flow(service: ServiceFixture) -> None:
    entries = {each["id"]: each for each in service.get("/slo")["entries"]}
    latency = entries["us-to-eu-latency-10s"]
    # No canary was slow, but the audit found lost records.
    assert latency["events"]["bad"] == 0
    assert (latency["status"], latency["status_reason"]) == ("at_risk", "audit found faults")
    assert latency["audit"]["faults"] == {"lost": 4}
    assert latency["audit"]["run_ids"] == ["run-0", "run-1"]
    assert entries["eu-to-us-availability"]["audit"] is None


def test_metrics_show_newest_finished_run_of_each_flow(service: ServiceFixture) -> None:
    for path in ("/slo", "/slo", "/slo/nope", "/audits/run-1", "/nothing/here"):
        service.client.get(path)
    response = service.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    flow = ("us->eu", "us", "eu")
    assert found["mm2_audit_records", *flow, "matched"] == 5_000_000_001
    assert found["mm2_audit_records", *flow, "duplicate"] == 0
    assert found["mm2_audit_faults_records", *flow] == 2
    assert found["mm2_audit_unaudited_topics", *flow] == 1
    ended = NOW - 7 * HOUR
    assert found["mm2_audit_window_end_timestamp_seconds", *flow] == ended / 1000
    assert found["mm2_audit_complete_up_to_timestamp_seconds", *flow] == ended / 1000
    assert found["mm2_audit_last_run_timestamp_seconds", *flow] == (ended + 500) / 1000
    assert found["mm2_audit_runs", "finished"] == 2
    assert found["mm2_audit_runs", "failed"] == 1
    assert not [name for name, *labels in found if "eu->us" in labels]
    assert found["mm2_report_requests_total", "/slo", "200"] == 2
    assert found["mm2_report_requests_total", "/slo/{slo}", "404"] == 1
    assert found["mm2_report_requests_total", "unmatched", "404"] == 1
    assert found["mm2_report_build_info", "0.1.0"] == 1
    assert found["process_resident_memory_bytes",] > 1e6
    reported = {each.name for group in REPORT_GROUPS.values() for each in group}
    assert {name for name, *_ in found} <= BY_NAME.keys() | reported


def test_status_page_shows_audit_verdicts(service: ServiceFixture) -> None:
    text = service.client.get("/").text
    assert "run-1" in text
    assert "Spark &lt;did&gt; not start" in text


class FakeRecorder:
    """A recorder whose second exporter is unavailable."""

    health = RecorderHealth(
        targets=(
            TargetHealth(name="http://a/metrics", scrapes=9, indicators=5),
            TargetHealth(name="http://b/metrics", scrapes=8, failures=7, problem="no connection"),
        ),
        recorded_until=NOW - NOW % 60_000,
    )


def test_recorder_problem_is_in_current_warnings_and_metrics(store: Store) -> None:
    service = start_service(store, recorder=FakeRecorder())
    warning = "http://b/metrics cannot be scraped: no connection"
    assert service.get("/slo")["warnings"] == [warning]
    assert service.get("/slo?at=2026-07-12T00:00:00Z")["warnings"] == []
    lines = service.client.get("/metrics").text.splitlines()
    assert 'mm2_report_scrape_failures_total{exporter="http://b/metrics"} 7.0' in lines
    assert 'mm2_report_scrapes_total{exporter="http://a/metrics"} 9.0' in lines
    assert "mm2_report_recorded_until_timestamp_seconds 1.784025e+09" in lines


class ReadCountingStore:
    """A store that records the largest number of rows read by a call."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            found = getattr(self._store, name)(*given, **named)
            if name in {"runs", "runs_by_id", "evidence", "units"}:
                self.most = max(self.most, len(found))
            return found

        return counted


def test_ten_thousand_runs_are_read_only_as_needed(tmp_path: Path) -> None:
    count = 10_000
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as store:
        with store._writing() as connection:
            rows = [
                run_row(
                    Run(
                        header(f"run-{number:05}", Window(0, 1), number),
                        RunState.FAILED,
                        finished_at=number,
                        verdict_line="why",
                    )
                )
                for number in range(count)
            ]
            connection.execute(insert(store_schema.runs), rows)
        counting = ReadCountingStore(store)
        service = start_service(cast("Store", counting), sample_source())
        first = service.get("/audits?limit=3&flow=us->eu")
        assert [each["id"] for each in first["runs"]] == ["run-09999", "run-09998", "run-09997"]
        assert first["total"] == count
        second = service.get(f"/audits?limit=3&flow=us->eu&cursor={first['next']}")
        assert second["runs"][0]["id"] == "run-09996"
        assert service.get("/audits/run-00007")["id"] == "run-00007"
        for path in ("/metrics", "/", "/slo"):
            assert service.client.get(path).status_code == 200
        assert counting.most == 5
        # Suggestions come from the newest runs only.
        assert service.client.get("/audits/run-9999").json()["near"] == ["run-09999"]
        assert counting.most == 500
