"""MirrorMaker 2 with exactly-once support: markers are not lag, aborted copies do not count.

The exporter is configured without it: it finds this and other settings in running connectors.
"""

from collections.abc import Iterator
from typing import cast

import flow_checks
import pytest
import yaml
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.record_contents import now
from confluent_kafka import Message
from exporter_watch import Scrape, Watch, counters_never_decreased
from topic_reader import count_copies, read_topic
from transactional_traffic import OpenTransaction, produce_in_transaction

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC, COPY = "exact", "us.exact"
CARRIER = "us.heartbeats"
INSTANCE = "exactly-once"
SETTINGS = {
    "eu.exactly.once.source.support": "enabled",
    "us.exactly.once.source.support": "enabled",
    "us.consumer.isolation.level": "read_committed",
    "eu.consumer.isolation.level": "read_committed",
    "dedicated.mode.enable.internal.rest": "true",
    "listeners": "http://127.0.0.1:0",
}


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties=SETTINGS)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (2, 0)}) as own:
        yield own


DEFAULTS = {
    "exactly_once": False,
    "isolation": "read_uncommitted",
    "checkpoint_interval": "60s",
    "heartbeat_interval": "5s",
}


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    assert "exactly_once: true" in lab.config_yaml()
    assert "isolation: read_committed" in lab.config_yaml()
    with flow_checks.watch_flows(lab, INSTANCE, US_EU, settings=DEFAULTS) as watching:
        yield watching


def overridden(scrape: Scrape) -> set[str]:
    return set(scrape.by("setting", "mm2_flow_setting_overridden", flow="us->eu"))


def committed_numbers(lab: Lab) -> list[int]:
    return flow_checks.read_numbers(lab, US_EU, COPY, "read_committed")


def test_transaction_markers_on_target_are_not_lag(lab: Lab, seen: Watch) -> None:
    flow_checks.send(lab, US_EU, TOPIC, 1_000)
    at_rest = flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert flow_checks.position_qualities(at_rest, US_EU, TOPIC) == {"exactly_once"}
    assert committed_numbers(lab) == list(range(1_000))
    assert overridden(at_rest) == set(DEFAULTS)
    # Interpolation would count the markers as records.
    assert count_copies(lab, TOPIC) > 1_000
    assert at_rest.value("mm2_flow_lag_records", flow="us->eu") == 0


def test_markers_and_aborted_records_on_source_are_not_lag(lab: Lab, seen: Watch) -> None:
    us = lab.cluster("us").librdkafka()
    for number, abort in enumerate((False, True)):
        produce_in_transaction(
            us,
            TOPIC,
            Load(50, first=1_000 + 50 * number, value_size=20),
            transactional_id="orders",
            abort=abort,
        )
    at_rest = flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert committed_numbers(lab) == list(range(1_050))
    assert at_rest.value("mm2_flow_lag_records", flow="us->eu") == 0
    for lost in at_rest.values("mm2_retention_lost_records_total", topic=TOPIC).values():
        assert lost == 0


def test_open_transaction_is_held_back_and_not_lag(lab: Lab, seen: Watch) -> None:
    with OpenTransaction(
        lab.cluster("us").librdkafka(), TOPIC, transactional_id="held"
    ) as transaction:
        transaction.send(Load(30, first=1_050, partition=0, value_size=20))
        held = seen.until(
            lambda s: (
                s.value("mm2_open_transaction_records", topic=TOPIC, partition="0") == 30
                and s.value("mm2_flow_lag_records", flow="us->eu") == 0
            ),
            "30 records in an open transaction",
        )
        assert held.value("mm2_replication_lag_records", topic=TOPIC, partition="0") == 0
        transaction.commit()
    flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert committed_numbers(lab) == list(range(1_080))


def test_markers_at_partition_ends_are_not_lag(lab: Lab, seen: Watch) -> None:
    """One partition ends with an old marker, the other gets new ones: both have no lag."""
    flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    for number in range(3):
        produce_in_transaction(
            lab.cluster("us").librdkafka(),
            TOPIC,
            Load(1, partition=0),
            transactional_id="none",
            abort=True,
        )
        flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
        start = len(seen.scrapes)
        seen.after_cycles(6)
        lags = [
            flow_checks.values_by_partition(scrape, "mm2_replication_lag_records", US_EU, TOPIC)
            for scrape in seen.scrapes[start:]
        ]
        assert lags == [{"0": 0, "1": 0}] * len(lags), number


def test_kill_between_commits_causes_no_committed_duplicates(lab: Lab, seen: Watch) -> None:
    before, more = len(committed_numbers(lab)), 60_000
    start = count_copies(lab, TOPIC)
    flow_checks.send(lab, US_EU, TOPIC, more, first=before)
    wait_for(lambda: count_copies(lab, TOPIC) > start + 5_000, "some of the copies")
    wait_for(lambda: paused_in_transaction(lab), "a pause within a transaction")
    lab.mm2.kill()
    assert len(committed_numbers(lab)) < before + more
    lab.mm2.start()
    flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY, timeout=120)
    assert committed_numbers(lab) == list(range(before + more))
    # The open transaction was aborted, and its records replicated again.
    assert len(flow_checks.read_numbers(lab, US_EU, COPY)) > before + more
    after = flow_checks.until_canaries(seen, US_EU, 10)
    assert flow_checks.position_qualities(after, US_EU, TOPIC) == {"exactly_once"}
    assert counters_never_decreased(seen.scrapes) == []


def test_audit_reads_committed_records_only(lab: Lab) -> None:
    """Markers, aborted copies and open transactions of both sides are not audited."""
    us, eu = (lab.cluster(alias).librdkafka() for alias in ("us", "eu"))
    records = len(committed_numbers(lab))
    with (
        OpenTransaction(us, TOPIC, transactional_id="held-at-source") as at_source,
        OpenTransaction(eu, COPY, transactional_id="held-at-target") as at_target,
    ):
        at_source.send(Load(30, first=records, partition=0, value_size=20))
        at_target.send(Load(20, first=records, partition=1, value_size=20))
        window = Window(now() - 3_600_000, now())
        found = audit(AuditRequest(unaware_config(lab), window, topics=(TOPIC,)))
        written = flow_checks.end_offsets(us, TOPIC), flow_checks.end_offsets(eu, COPY)
    outcome = found.outcomes[COPY]
    assert {verdict: n for verdict, n in outcome.counts.items() if n} == {Verdict.MATCHED: records}
    assert found.conclusion.exit_code == 0
    assert [note for note in found.notes if "exactly_once" in note] == [
        "us->eu: exactly_once is configured as 'false', but MirrorMaker 2 runs with 'true'; the"
        " audit used 'true'"
    ]
    (flow,) = outcome.scope.flows
    assert flow.partitions[0].end <= written[0]["0"] - 30
    assert outcome.scope.partitions[1].end <= written[1]["1"] - 20


def unaware_config(lab: Lab) -> str:
    """The lab's mm2slo.yaml with defaults instead of what MirrorMaker 2 runs with."""
    document = yaml.safe_load(lab.config_yaml())
    document["flows"] = [each | DEFAULTS for each in document["flows"]]
    return yaml.safe_dump(document)


def paused_in_transaction(lab: Lab) -> bool:
    """Pause MirrorMaker 2; resume it unless the copy has uncommitted records."""
    eu = lab.cluster("eu").librdkafka()
    lab.mm2.pause()
    # A commit in flight is complete by the second check.
    for _ in range(2):
        if flow_checks.end_offsets(eu, COPY, "read_committed") == flow_checks.end_offsets(eu, COPY):
            lab.mm2.resume()
            return False
    return True


def own_canaries(lab: Lab, isolation: str) -> list[Message]:
    found = read_topic(lab.cluster("eu").librdkafka(), CARRIER, isolation=isolation)
    return [m for m in found if dict(m.headers() or []).get("mm2slo-instance") == INSTANCE.encode()]


def occurrences(lab: Lab, canary: Message, isolation: str) -> int:
    return sum(headers(found) == headers(canary) for found in own_canaries(lab, isolation))


def headers(message: Message) -> tuple[tuple[str, bytes], ...]:
    """Headers of a consumed message, which are always a list."""
    return tuple(cast("list[tuple[str, bytes]]", message.headers()))


def test_aborted_canary_copy_is_not_duplicate(lab: Lab, seen: Watch) -> None:
    """As after a crash within a transaction: the copy is aborted, then written again."""
    eu = lab.cluster("eu").librdkafka()
    newest = own_canaries(lab, "read_committed")[-1]
    again = Load(1, keys=("again",), partition=0, headers=headers(newest))
    produce_in_transaction(eu, CARRIER, again, transactional_id="aborted", abort=True)
    assert occurrences(lab, newest, "read_uncommitted") == 2
    assert occurrences(lab, newest, "read_committed") == 1
    flow_checks.until_canaries(seen, US_EU, 5)
    # The same record, committed, is a duplicate.
    produce_in_transaction(eu, CARRIER, again, transactional_id="aborted")
    found = seen.until(
        lambda s: flow_checks.canary_value(s, US_EU, "duplicates_total") > 0, "the duplicate"
    )
    assert flow_checks.canary_value(found, US_EU, "duplicates_total") == 1


def test_every_settled_canary_is_good(seen: Watch) -> None:
    """Transaction markers are not counted as losses."""
    scrape = seen.until(lambda s: s.sli("us->eu", "completeness")[1] >= 20, "settled canaries")
    good, total, _unknown = scrape.sli("us->eu", "completeness")
    assert good == total
    assert flow_checks.canary_value(scrape, US_EU, "lost_total") == 0


def test_heartbeats_that_are_switched_off_are_disabled_and_do_not_age(
    lab: Lab, seen: Watch
) -> None:
    """Last: without heartbeats, the lab cannot wait for MirrorMaker 2."""
    enabled = seen.after_cycles(1)
    assert enabled.value("mm2_flow_info", flow="us->eu", heartbeats="enabled") == 1
    assert enabled.value("mm2_heartbeats_present", flow="us->eu") == 1
    off = {"eu->us.enabled": "true", "eu->us.emit.heartbeats.enabled": "false"}
    lab.mm2.configure(off)
    lab.mm2.restart(wait=False)
    disabled = seen.until(
        lambda s: s.value("mm2_heartbeats_present", flow="us->eu") == 0, "disabled"
    )
    assert disabled.value("mm2_flow_info", flow="us->eu", heartbeats="disabled") == 1
    assert disabled.values("mm2_heartbeat_age_seconds", flow="us->eu") == {}
    assert overridden(disabled) == {*DEFAULTS, "emit_heartbeats"}
    before = disabled.value("mm2_canary_received_total", flow="us->eu") or 0
    seen.until(
        lambda s: (s.value("mm2_canary_received_total", flow="us->eu") or 0) > before + 5,
        "canaries",
    )
