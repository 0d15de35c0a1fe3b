"""Metrics of the newest finished audit of each flow: rates, latency, evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families
from report_service_fixture import NOW, ServiceFixture, start_service
from store_specs.sample_results import evidence, orders_outcome

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    LatencyCells,
    PartitionOutcome,
    UnitOutcome,
    Verdict,
    latency_bucket,
)
from mm2slo_core.catalogue.service_metrics import AUDITS
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import AuditRun, JudgedUnit, RunHeader
from mm2slo_store.store import Store

HOUR = 3_600_000
LABELS = {metric.name: metric.labels for metric in AUDITS.metrics}
US_EU, EU_US = Flow("us", "eu"), Flow("eu", "us")
WINDOW = Window(NOW - 2 * HOUR, NOW - HOUR)
LATER = Window(NOW - HOUR, NOW)
KNOWN = LatencyCells({(latency_bucket(10), latency_bucket(20)): 300})
"""300 records: enough for p99, too few for p99.9."""
COUNTS = {Verdict.MATCHED: 5, Verdict.LOST: 5, Verdict.DUPLICATE: 1, Verdict.REPLAY: 1}
ROUNDED = 5e-6
"""Rounding of published tables of Clopper-Pearson intervals."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "r.db", clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def service(store: Store) -> ServiceFixture:
    return start_service(store)


def topic(
    name: str,
    counts: Mapping[Verdict, int],
    *,
    flow: Flow = US_EU,
    window: Window = WINDOW,
    **more: Any,
) -> UnitOutcome:
    """A topic fed by one flow."""
    part = {key: more.pop(key) for key in ("end_to_end", "transfer", "source_bytes") if key in more}
    made = orders_outcome(window, topic=name)
    of_flow = replace(made.scope.flows[0], flow=flow)
    return replace(
        made,
        **{
            "scope": replace(made.scope, flows=(of_flow,)),
            "partitions": (PartitionOutcome(flow=0, partition=1, counts=counts, **part),),
            "affinity": AffinityOutcome(),
            "replays": (),
            "evidence": (),
            **more,
        },
    )


def publish(
    store: Store,
    run_id: str,
    *outcomes: UnitOutcome,
    rate: float = 0.01,
    at: int = NOW - HOUR,
) -> None:
    flows = tuple({each.flow for outcome in outcomes for each in outcome.scope.flows})
    window = outcomes[0].scope.window
    store.publish(
        AuditRun(
            RunHeader(run_id, flows, window, at, rate, 0, ""),
            finished_at=at + 500,
            exit_code=0,
            verdict_line="",
            complete_up_to=window.end,
            judged=tuple(map(JudgedUnit, outcomes)),
        )
    )


def published(service: ServiceFixture, flow: Flow = US_EU) -> dict[tuple[str, ...], float]:
    """Values by name and labels, without the labels of the flow."""
    text = service.client.get("/metrics").text
    return {
        (
            sample.name.removeprefix("mm2_audit_"),
            *(sample.labels[name] for name in LABELS[sample.name][3:]),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("flow") == flow.label
    }


def bounds(found: Mapping[tuple[str, ...], float], *key: str) -> list[float | None]:
    return [found.get((*key, bound)) for bound in ("estimate", "lower", "upper")]


def test_rates_of_sampled_audit_have_exact_confidence_bounds(
    store: Store, service: ServiceFixture
) -> None:
    keys = AffinityOutcome(keys=10, keys_split=1, keys_disordered=0)
    publish(store, "r1", topic("t", COUNTS, affinity=keys, copied_again=2))
    found = published(service)
    # 5 of 10, 2 of 5, 0 of 10 and 1 of 10: Clopper-Pearson intervals at 95 %.
    for key, expected in (
        (("records_ratio", "lost"), [0.5, 0.187086, 0.812914]),
        (("records_ratio", "duplicate"), [0.4, 0.052745, 0.853367]),
        (("records_ratio", "moved"), [0.0, 0.0, 0.308497]),
        (("keys_ratio", "affinity"), [0.1, 0.002529, 0.445016]),
        (("keys_ratio", "order"), [0.0, 0.0, 0.308497]),
    ):
        assert bounds(found, *key) == pytest.approx(expected, abs=ROUNDED), key
    assert found["sampled_ratio",] == 0.01
    # In a sample an altered record counts as lost: its copy is sampled independently.
    assert bounds(found, "records_ratio", "altered") == [None, None, None]


def test_rates_of_census_are_exact(store: Store, service: ServiceFixture) -> None:
    counts = {Verdict.MATCHED: 90, Verdict.ALTERED: 10}
    keys = AffinityOutcome(keys=10, keys_split=1)
    publish(
        store,
        "r1",
        topic("t", counts, affinity=keys),
        topic("u", {Verdict.MATCHED: 100}, affinity=replace(keys, keys=30), order_judged=False),
        rate=1.0,
    )
    found = published(service)
    assert bounds(found, "records_ratio", "altered") == [0.05, 0.05, 0.05]
    assert bounds(found, "records_ratio", "lost") == [0.0, 0.0, 0.0]
    assert bounds(found, "keys_ratio", "affinity") == [0.05, 0.05, 0.05]
    # Order was judged in one topic only.
    assert bounds(found, "keys_ratio", "order") == [0.0, 0.0, 0.0]
    assert found["sampled_ratio",] == 1.0


def test_record_size_is_the_mean_over_source_records(store: Store, service: ServiceFixture) -> None:
    gone = {Verdict.MATCHED: 1, Verdict.UNAUDITABLE: 9}
    publish(
        store,
        "r1",
        # Duplicates and replays are on the target, expired records are counted from offsets.
        topic("t", COUNTS | {Verdict.EXPIRED: 7}, source_bytes=1_000),
        topic("u", {Verdict.MATCHED: 30}, source_bytes=7_000),
        topic("v", gone, source_bytes=100),
    )
    assert published(service)["record_size_bytes",] == 200.0


def test_record_size_without_records_is_absent(store: Store, service: ServiceFixture) -> None:
    publish(store, "r1", topic("t", {Verdict.DUPLICATE: 3}, source_bytes=0))
    assert ("record_size_bytes",) not in published(service)


def test_keys_ratio_over_several_sampled_topics_has_no_bounds(
    store: Store, service: ServiceFixture
) -> None:
    keys = AffinityOutcome(keys=10, keys_split=1)
    publish(store, "r1", *(topic(name, COUNTS, affinity=keys) for name in "tu"))
    found = published(service)
    assert bounds(found, "keys_ratio", "affinity") == [0.1, None, None]
    # Records are sampled independently of their topic: 10 of 20.
    expected = [0.5, 0.27196, 0.72804]
    assert bounds(found, "records_ratio", "lost") == pytest.approx(expected, abs=ROUNDED)


def test_audit_without_settled_records_publishes_no_rates(
    store: Store, service: ServiceFixture
) -> None:
    publish(store, "r1", topic("t", {Verdict.PENDING: 3, Verdict.UNAUDITABLE: 2}))
    found = published(service)
    assert found["records", "unauditable"] == 2
    assert not [
        key for key in found if key[0] in {"records_ratio", "keys_ratio", "latency_seconds"}
    ]


def test_latency_percentiles_are_bounds_in_seconds(store: Store, service: ServiceFixture) -> None:
    early = LatencyCells({(None, latency_bucket(20)): 300})
    publish(store, "r1", topic("t", COUNTS, end_to_end=KNOWN, transfer=early), rate=1.0)
    found = {
        key[1:]: value for key, value in published(service).items() if key[0] == "latency_seconds"
    }
    assert found == {
        **{("end-to-end", p, "lower"): 0.010 for p in ("p50", "p90", "p95", "p99")},
        **{("end-to-end", p, "upper"): 0.020 for p in ("p50", "p90", "p95", "p99")},
        # Without a preceding poll, the lower bound is unknown, not 0.
        **{("transfer", p, "upper"): 0.020 for p in ("p50", "p90", "p95", "p99")},
    }


def test_sampled_latency_with_too_few_records_omits_p99(
    store: Store, service: ServiceFixture
) -> None:
    publish(store, "r1", topic("t", COUNTS, end_to_end=KNOWN))
    found = published(service)
    assert found["latency_seconds", "end-to-end", "p95", "upper"] == 0.020
    # A sampled p99 needs 368 records.
    assert ("latency_seconds", "end-to-end", "p99", "upper") not in found


def test_log_append_time_source_publishes_only_transfer_latency(
    store: Store, service: ServiceFixture
) -> None:
    publish(store, "r1", topic("t", COUNTS, transfer=KNOWN), rate=1.0)
    found = {key[1] for key in published(service) if key[0] == "latency_seconds"}
    assert found == {"transfer"}


def test_topic_fed_by_two_flows_publishes_no_latency(store: Store, service: ServiceFixture) -> None:
    publish(store, "r1", orders_outcome(WINDOW), topic("t", COUNTS, transfer=KNOWN), rate=1.0)
    found = {key[1] for key in published(service) if key[0] == "latency_seconds"}
    assert found == {"transfer"}


def test_evidenced_and_unevidenced_records_are_counted_separately(
    store: Store, service: ServiceFixture
) -> None:
    counts = {Verdict.MATCHED: 9, Verdict.LOST: 5, Verdict.EXPIRED: 7, Verdict.DUPLICATE: 1}
    kept = (*(evidence(Verdict.LOST, at) for at in (1, 2)), evidence(Verdict.DUPLICATE, 3))
    publish(store, "r1", topic("t", counts, evidence=kept), topic("u", {Verdict.MATCHED: 1}))
    found = published(service)
    assert (found["evidence_records", "lost"], found["unevidenced_records", "lost"]) == (2, 3)
    assert found["evidence_records", "duplicate"] == 1
    assert found["unevidenced_records", "duplicate"] == 0
    assert found["evidence_records", "moved"] == 0
    # Records without an anomaly have no evidence.
    assert not {"matched", "pending", "unauditable", "expired-unreplicated"} & {
        key[1] for key in found if "evidence" in key[0] or "unevidenced" in key[0]
    }


def test_two_flows_of_one_run_have_separate_rates(store: Store, service: ServiceFixture) -> None:
    back = {Verdict.MATCHED: 10}
    publish(store, "r1", topic("t", COUNTS), topic("t", back, flow=EU_US))
    assert published(service)["records_ratio", "lost", "estimate"] == 0.5
    found = published(service, EU_US)
    assert bounds(found, "records_ratio", "lost") == pytest.approx([0, 0, 0.308497], abs=ROUNDED)


def test_flow_without_finished_audit_has_no_audit_metrics(
    store: Store, service: ServiceFixture
) -> None:
    assert published(service) == {}
    running = RunHeader("r1", (US_EU,), WINDOW, NOW, 1.0, 0, "")
    store.announce(running)
    assert published(service) == {}
    store.fail(running, "no Spark")
    assert published(service) == {}
    lines = service.client.get("/metrics").text.splitlines()
    assert [line for line in lines if line.startswith("mm2_audit_")] == [
        'mm2_audit_runs{state="running"} 0.0',
        'mm2_audit_runs{state="finished"} 0.0',
        'mm2_audit_runs{state="failed"} 1.0',
    ]


def test_metrics_use_newest_finished_run(store: Store, service: ServiceFixture) -> None:
    publish(store, "r1", topic("t", COUNTS))
    assert published(service)["records_ratio", "lost", "estimate"] == 0.5
    running = RunHeader("r2", (US_EU,), LATER, NOW, 1.0, 0, "")
    store.announce(running)
    assert published(service)["records_ratio", "lost", "estimate"] == 0.5
    publish(store, "r3", topic("t", {Verdict.MATCHED: 1}, window=LATER), at=NOW)
    assert published(service)["records_ratio", "lost", "estimate"] == 0
    # Auditing an old window again does not make it the newest run.
    publish(store, "r0", topic("t", COUNTS), at=NOW - 2 * HOUR)
    assert published(service)["records_ratio", "lost", "estimate"] == 0


def test_superseded_units_are_not_counted(store: Store, service: ServiceFixture) -> None:
    publish(store, "r1", topic("t", COUNTS), topic("u", {Verdict.MATCHED: 10}))
    assert published(service)["records", "lost"] == 5
    publish(store, "r0", topic("t", {Verdict.MATCHED: 10}), at=NOW - 2 * HOUR)
    found = published(service)
    assert (found["records", "lost"], found["records", "matched"]) == (0, 10)


class CountingStore:
    """A store that records the names of its calls."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)


def test_repeated_scrapes_read_a_run_once(store: Store) -> None:
    publish(store, "r1", topic("t", COUNTS), topic("t", COUNTS, flow=EU_US))
    counting = CountingStore(store)
    service = start_service(cast("Store", counting))
    first = published(service)
    assert published(service) == first
    assert [each for each in counting.calls if each in {"units", "count_evidence"}] == [
        "units",
        "count_evidence",
    ]
