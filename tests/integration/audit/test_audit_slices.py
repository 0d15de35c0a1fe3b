"""A sample by slices finds exactly the faults of its slices, and is refused if it has too few."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_scenario import US_EU
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed, now
from audit_scenario.scenario_steps import SETTINGS, traffic
from fault_injection import Injector, compare, named, read_all
from topic_reader import committed_offsets, count_copies

from mm2slo_audit.scope import open_clients, read_scopes
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.record_sample import Sample, SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.source_slices import slice_ranges
from mm2slo_core.config import load_config
from mm2slo_core.user_errors import UserError
from mm2slo_lab.condition_wait import wait_for

if TYPE_CHECKING:
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

SLICE_BYTES = 400
REPLAYED = 1_000


def write_faults(lab: Lab, topic: str) -> None:
    """Losses, a rewind of MirrorMaker 2, and copies and records of another producer."""
    us, eu = lab.cluster("us"), lab.cluster("eu")
    injector = Injector(us.librdkafka(), eu.librdkafka(), topic, f"us.{topic}")
    copied = []
    for block in range(20):
        copied += injector.plain(keyed(2, 150, first=150 * block))
        injector.lose(keyed(2, 6, first=100_000 + 6 * block, text="lost"))
    copied += injector.plain(keyed(2, 50, first=10_000))
    wait_copied(lab, US_EU, f"us.{topic}", injector.copied)
    wait_all_committed(lab, US_EU, topic)
    with traffic(lab, topic, rate=1_000):
        before = committed_offsets(lab, US_EU, topic)
        wait_for(lambda: committed_offsets(lab, US_EU, topic) != before, "a flush")
        start = count_copies(lab, topic)
        wait_for(lambda: count_copies(lab, topic) >= start + REPLAYED, "a block to replay")
        lab.mm2.kill()
        lab.mm2.start()
    wait_all_committed(lab, US_EU, topic)
    for record in copied[-400::20]:
        injector.duplicate(record)
        injector.foreign(record.place.partition, replace(record.content, value=b"foreign"))
    injector.write_target()
    injector.plain(keyed(2, 600, first=20_000))
    wait_all_committed(lab, US_EU, topic)


def drawn_places(outcome: UnitOutcome) -> set[tuple[int, int]]:
    return {
        (each.partition, offset)
        for each in outcome.scope.slices
        for offset in range(each.start, each.end)
    }


def test_slices_find_exactly_the_faults_of_their_records(lab: Lab, fresh_topic: str) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 2)
    start = now()
    lab.mm2.configure(SETTINGS)
    lab.mm2.restart()
    try:
        write_faults(lab, fresh_topic)
        read = compare(
            read_all(us.librdkafka(), fresh_topic), read_all(eu.librdkafka(), f"us.{fresh_topic}")
        )
        request = AuditRequest(
            lab.config_yaml(),
            Window(start, now()),
            topics=(fresh_topic,),
            sample=0.25,
            slice_bytes=SLICE_BYTES,
        )
        result = audit(request)
    finally:
        lab.mm2.stop()
        lab.mm2.configure({})
        lab.mm2.start()

    outcome = result.outcomes[f"us.{fresh_topic}"]
    drawn = drawn_places(outcome)
    assert outcome.slices >= 30
    assert all(each.target is not None for each in outcome.scope.slices)
    lost = {place for place in read.missing if place in drawn}
    assert len(lost) >= 10
    found = named(outcome.evidence)[Verdict.LOST]
    assert {(each.partition, each.offset) for each in found} == lost
    assert outcome.counts[Verdict.LOST] == len(lost)
    assert outcome.counts[Verdict.MATCHED] == len(drawn) - len(lost)

    source_of = {pair[1].content: pair[0].place for pair in read.pairs}
    _sources, ranges = slice_ranges(outcome.scope)
    copies = read_all(eu.librdkafka(), f"us.{fresh_topic}")
    again = [
        copy
        for copy in copies
        if copy.place in read.duplicates
        and source_of[copy.content] in drawn
        and any(
            number == copy.place.partition and start <= copy.place.offset < end
            for number, start, end in ranges
        )
    ]
    assert len(again) >= 100
    counts = outcome.counts
    assert counts.get(Verdict.DUPLICATE, 0) + counts[Verdict.REPLAY] == len(again)
    # Records of the other producer are in the ranges that were read, but not extra.
    assert {verdict for verdict, n in counts.items() if n} - {Verdict.DUPLICATE} == {
        Verdict.MATCHED,
        Verdict.LOST,
        Verdict.REPLAY,
    }
    assert "in a sample of 25% by slices" in result.conclusion.line


def test_too_few_slices_are_refused_with_the_share_that_is_needed(
    lab: Lab, fresh_topic: str
) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    injector = Injector(us.librdkafka(), {}, fresh_topic, f"us.{fresh_topic}")
    injector.plain(keyed(2, 3_000))
    wait_copied(lab, US_EU, f"us.{fresh_topic}", injector.copied)
    config = load_config(lab.config_yaml())
    window = Window(now() - 600_000, now())
    sample = Sample(0.01, 0, SampleBy.SLICES, SLICE_BYTES // 4)
    with open_clients(config) as clients, pytest.raises(UserError) as refused:
        read_scopes(config, ["us->eu"], [fresh_topic], window, clients, sample=sample)
    assert f"us.{fresh_topic} has 2 slices of 0.0001 MB in a sample of 1%" in str(refused.value)
    share = float(str(refused.value).partition("--sample ")[2].partition("%")[0]) / 100
    enough = Sample(share, 0, SampleBy.SLICES, SLICE_BYTES // 4)
    with open_clients(config) as clients:
        found = read_scopes(
            config, ["us->eu"], [fresh_topic], window, clients, sample=enough, clock=time.time
        )
    (scope,) = found.scopes
    assert len({each.number for each in scope.slices}) >= 30
