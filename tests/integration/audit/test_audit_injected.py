"""Checks the injector: an independent reader of both clusters finds the same faults."""

import pytest
from audit_scenario.scenario_run import AuditScenario
from audit_scenario.scenario_steps import (
    BOTH_STAMPED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    MORE_PARTITIONS,
    REPLAY,
    TARGET_STAMPED,
    TRANSACTIONS,
    UNUSUAL,
)
from fault_injection import Place, replays

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]


def places(scenario: AuditScenario, name: str, side: Side, *verdicts: Verdict) -> set[Place]:
    """Places of injected faults on one side."""
    truth = scenario.topics.injectors[name].truth
    return {
        Place(each.partition, each.offset)
        for verdict in verdicts
        for each in truth.places[verdict]
        if each.side is side
    }


def test_full_read_finds_injected_faults(scenario: AuditScenario) -> None:
    read, truth = scenario.reads[FAULTS], scenario.topics.injectors[FAULTS].truth
    missing = (Verdict.LOST, Verdict.ALTERED, Verdict.MOVED)
    assert read.missing == places(scenario, FAULTS, Side.SOURCE, *missing)
    assert read.duplicates == places(scenario, FAULTS, Side.TARGET, Verdict.DUPLICATE)
    written_by_test = {*truth.counterparts.values()} | places(
        scenario, FAULTS, Side.TARGET, Verdict.EXTRA
    )
    assert read.foreign == written_by_test
    assert len(read.pairs) == 1_400
    assert truth.counts() == {
        Verdict.LOST: 12,
        Verdict.ALTERED: 12,
        Verdict.MOVED: 6,
        Verdict.DUPLICATE: 11,
        Verdict.EXTRA: 11,
    }


def test_kill_causes_one_replay_per_partition(scenario: AuditScenario) -> None:
    read = scenario.reads[REPLAY]
    blocks = replays(read.duplicates)
    assert sum(size for _, size in blocks) == len(read.duplicates) >= 1_000
    assert [start.partition for start, _ in blocks] == [0, 1]
    assert read.missing == read.foreign == frozenset()


def test_expired_records_have_no_copies(scenario: AuditScenario) -> None:
    truth = scenario.topics.injectors[EXPIRED].truth
    assert truth.counts() == {Verdict.EXPIRED: 200}
    # 500 before the gap, which the source no longer holds, and 50 after it.
    assert len(scenario.target[EXPIRED]) == 550
    assert len(scenario.reads[EXPIRED].pairs) == len(scenario.source[EXPIRED]) == 50


def test_compacted_topic_misses_three_newest_values(scenario: AuditScenario) -> None:
    assert scenario.reads[COMPACTED].missing == places(
        scenario, COMPACTED, Side.SOURCE, Verdict.LOST
    )
    assert len(scenario.reads[COMPACTED].missing) == 3


@pytest.mark.parametrize(
    ("name", "records"),
    [
        (CLEAN, 10_000),
        (TRANSACTIONS, 600),
        (UNUSUAL, 90),
        (TARGET_STAMPED, 8_000),
        (BOTH_STAMPED, 8_000),
        (MORE_PARTITIONS, 3_000),
    ],
)
def test_other_topics_were_replicated_unchanged(
    scenario: AuditScenario, name: str, records: int
) -> None:
    read = scenario.reads[name]
    assert len(read.pairs) >= records
    assert read.missing == read.duplicates == read.foreign == frozenset()
