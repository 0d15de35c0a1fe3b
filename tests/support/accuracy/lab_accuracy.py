"""Measures the accuracy of an audit of the lab."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from audit_scenario.scenario_run import AuditScenario, play_scenario
from audit_scenario.scenario_steps import (
    BOTH_STAMPED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    RECORDS_AFTER_STOP,
    REPLAY,
    STOPPED,
    TARGET_STAMPED,
)
from fault_injection import Found, Stored

from accuracy.latency_bounds import Truth, Widths, widths
from accuracy.verdict_scores import Tally
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_lab.running_lab import Lab

_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class LabFigures:
    """Results of the audit compared with the true verdicts."""

    tally: Tally
    latencies: dict[str, Widths]
    replayed: int
    clean: int


def lab_figures() -> LabFigures:
    """Start a lab, inject faults, audit, and compare."""
    with Lab.start() as lab:
        lab_audit = play_scenario(lab, "accuracy")
    tally = Tally()
    for name in lab_audit.reads:
        outcome = lab_audit.outcome(name)
        tally.add(outcome, *_truth(lab_audit, name))
    tally.add_places(*_overdue(lab_audit))
    return LabFigures(
        tally=tally,
        latencies=dict(_latencies(lab_audit)),
        replayed=len(lab_audit.reads[REPLAY].duplicates),
        clean=lab_audit.outcome(CLEAN).counts[Verdict.MATCHED],
    )


def _truth(
    lab_audit: AuditScenario, name: str
) -> tuple[dict[Verdict, set[Found]], dict[Verdict, int]]:
    """True verdicts by offset, and counts of verdicts without evidence."""
    read, outcome = lab_audit.reads[name], lab_audit.outcome(name)
    counts = {Verdict.MATCHED: len(read.pairs)}
    truth = (
        lab_audit.topics.injectors[name].truth.named() if name in lab_audit.topics.injectors else {}
    )
    if name == REPLAY:
        truth = {Verdict.REPLAY: {Found(Side.TARGET, *place) for place in read.duplicates}}
    elif name == EXPIRED:
        counts[Verdict.EXPIRED] = len(truth.pop(Verdict.EXPIRED))
        counts[Verdict.UNAUDITABLE] = len(read.foreign)
    elif name == COMPACTED:
        counts[Verdict.MATCHED] = equal_newest(lab_audit.source[name], lab_audit.target[name])
    elif name == CLEAN:
        counts |= _in_traffic(read.pairs, outcome.scope)
    return truth, counts


def _in_traffic(pairs: Sequence[tuple[Stored, Stored]], scope: UnitScope) -> dict[Verdict, int]:
    """All are copied in the end; matched if below the end offsets that the audit read."""
    source = {each.partition: each.end for each in scope.flows[0].partitions}
    target = {each.partition: each.end for each in scope.partitions}
    arrived = [
        copy.place.offset < target[copy.place.partition]
        for one, copy in pairs
        if scope.window.contains(one.content.timestamp)
        and one.place.offset < source[one.place.partition]
    ]
    return {Verdict.MATCHED: sum(arrived), Verdict.PENDING: len(arrived) - sum(arrived)}


def _overdue(
    lab_audit: AuditScenario,
) -> tuple[dict[Verdict, set[Found]], dict[Verdict, set[Found]]]:
    """Records sent after MirrorMaker 2 stopped, and those that the audit found overdue."""
    sent = lab_audit.topics.injectors[STOPPED].copied
    true = {Found(Side.SOURCE, 0, offset) for offset in range(sent - RECORDS_AFTER_STOP, sent)}
    found: defaultdict[Verdict, set[Found]] = defaultdict(set)
    for outcome in lab_audit.stopped.outcomes.values():
        for each in outcome.evidence:
            found[each.verdict].add(Found(each.side, each.partition, each.offset))
    return {Verdict.OVERDUE: true}, found


def equal_newest(source: list[Stored], target: list[Stored]) -> int:
    """Number of keys with equal newest records on both sides."""
    here, there = (
        {each.content.key: each.content for each in sorted(side, key=lambda one: one.place)}
        for side in (source, target)
    )
    return sum(there.get(key) == content for key, content in here.items())


def _latencies(lab_audit: AuditScenario) -> Iterator[tuple[str, Widths]]:
    for name, which in ((TARGET_STAMPED, "end_to_end"), (BOTH_STAMPED, "transfer")):
        outcome = lab_audit.result.unstamped[lab_audit.topics.copy(name)]
        kind = which.replace("_", " ")
        yield (
            f"lab, arrivals every 200 ms, polls every {_POLL_MS} ms, {kind}",
            widths(outcome, which, true_bounds(lab_audit, name, which)),
        )


def true_bounds(lab_audit: AuditScenario, name: str, which: str) -> Truth:
    """Bounds from LogAppendTime, which precedes readability, and from the independent reader.

    All processes share one clock.
    """
    pairs, arrivals = lab_audit.reads[name].pairs, lab_audit.arrivals[name]
    produced = which == "end_to_end"
    least = (
        copy.content.timestamp
        - (source.content.timestamp if produced else arrivals.source[source.place])
        for source, copy in pairs
    )
    greatest = (arrivals.target[copy.place] - source.content.timestamp for source, copy in pairs)
    return Truth(sorted(max(0, each) for each in least), sorted(greatest))
