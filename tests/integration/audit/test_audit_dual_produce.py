"""Producers that write both clusters, with as many partitions as each cluster likes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audited.auditing import Request, audit
from audited.contents import keyed, now
from fault_injection import Found, named, write

from mm2slo_core.audit.audit_scope import Comparison, Window
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_lab import Engine, Lab, LabTopology

if TYPE_CHECKING:
    from audited.auditing import Audited

    from mm2slo_lab.jars import Progress

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC = "orders"
PARTITIONS = {"us": 10, "eu": 5}
RECORDS, KEYS = 3_000, 100
LOST, ALTERED = range(600, 660, 10), range(700, 740, 10)
STRANGERS = 4
SPLIT = range(1_007, RECORDS, KEYS)
"""Records of one key that the target's producer sends elsewhere."""
FLOW = {"engine": "dual-produce", "policy": {"kind": "identity"}, "topics": [TOPIC]}


@pytest.fixture(scope="module")
def audited(lab_progress: Progress) -> tuple[Audited, dict[Verdict, set[Found]]]:
    topology = LabTopology(flows=(US_EU,), engine=Engine.NONE)
    with Lab.start(topology, progress=lab_progress) as lab:
        for alias, partitions in PARTITIONS.items():
            lab.cluster(alias).admin.create_topic(TOPIC, partitions)
        start = now()
        # All of it an hour ago, so that what is missing is due, but for the last: progress.
        sent = [
            (number % KEYS, replace(content, timestamp=start - 3_600_000 + number))
            for number, (_, content) in enumerate(keyed(1, RECORDS, keys=KEYS))
        ]
        sent += [(7, next(keyed(1, 1, first=RECORDS + 7, keys=KEYS))[1])]
        us = write(
            lab.cluster("us").librdkafka(), TOPIC, ((key % 10, content) for key, content in sent)
        )
        there = [
            (
                (key + (number in SPLIT)) % 5,
                replace(content, value=b"changed") if number in ALTERED else content,
            )
            for number, (key, content) in enumerate(sent)
            if number not in LOST
        ]
        strangers = keyed(1, STRANGERS, first=90_000, keys=100_000, text="foreign")
        there += [(0, replace(content, timestamp=start - 3_600_000)) for _, content in strangers]
        eu = write(lab.cluster("eu").librdkafka(), TOPIC, there)
        window = Window(start - 3_700_000, start - 60_000)
        found = audit(Request(lab.config_yaml(flow=FLOW), window, topics=(TOPIC,)))
    truth = {
        Verdict.LOST: {Found(Side.SOURCE, *us[number].place) for number in LOST},
        Verdict.ALTERED: {Found(Side.SOURCE, *us[number].place) for number in ALTERED},
        Verdict.EXTRA: {Found(Side.TARGET, *each.place) for each in eu[-STRANGERS:]},
    }
    return found, truth


def test_faults_are_named_though_partitions_differ(
    audited: tuple[Audited, dict[Verdict, set[Found]]],
) -> None:
    found, truth = audited
    outcome = found.outcomes[TOPIC]
    assert outcome.scope.comparison is Comparison.KEYS
    assert named(outcome.evidence) == truth
    assert outcome.counts[Verdict.MATCHED] == RECORDS - len(LOST) - len(ALTERED)
    assert found.conclusion.exit_code == 1


def test_the_key_that_left_its_partition_is_told(
    audited: tuple[Audited, dict[Verdict, set[Found]]],
) -> None:
    affinity = audited[0].outcomes[TOPIC].affinity
    assert affinity.keys == KEYS
    assert affinity.keys_split == len(affinity.broken_keys) == 1
    moved = len(SPLIT)
    assert affinity.records_moved == min(moved, RECORDS // KEYS - moved)


def test_positions_are_not_made_up(audited: tuple[Audited, dict[Verdict, set[Found]]]) -> None:
    (flow,) = audited[0].outcomes[TOPIC].scope.flows
    assert not flow.has_positions
    assert not list(itertools.filterfalse(lambda each: each.known_from == 0, flow.partitions))
