"""The figures of the lab's story."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from audited import APPENDED, CLEAN, COMPACTED, EXPIRED, REPLAY, STAMPED, STOPPED, tell
from audited.play import AFTER_THE_STOP
from fault_injection import Found

from accuracy.latency_bounds import Truth, Widths, widths
from accuracy.verdict_scores import Tally
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.timeline_record import Side
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from audited import Told
    from fault_injection import Stored

    from mm2slo_core.audit.audit_scope import UnitScope

_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class LabFigures:
    """What the audit of the story found, against its truth."""

    tally: Tally
    latencies: dict[str, Widths]
    replayed: int
    clean: int


def lab_figures() -> LabFigures:
    """Start a lab, tell the story, and compare."""
    with Lab.start() as lab:
        told = tell(lab, "accuracy")
    tally = Tally()
    for name in told.reads:
        outcome = told.outcome(name)
        tally.take(outcome, *_truth(told, name))
    tally.take_places(*_overdue(told))
    return LabFigures(
        tally=tally,
        latencies=dict(_latencies(told)),
        replayed=len(told.reads[REPLAY].duplicates),
        clean=told.outcome(CLEAN).counts[Verdict.MATCHED],
    )


def _truth(told: Told, name: str) -> tuple[dict[Verdict, set[Found]], dict[Verdict, int]]:
    """By offset, and the numbers of verdicts that leave no evidence."""
    read, outcome = told.reads[name], told.outcome(name)
    counts = {Verdict.MATCHED: len(read.pairs)}
    truth = told.story.injectors[name].truth.named() if name in told.story.injectors else {}
    if name == REPLAY:
        truth = {Verdict.REPLAY: {Found(Side.TARGET, *place) for place in read.duplicates}}
    elif name == EXPIRED:
        counts[Verdict.EXPIRED] = len(truth.pop(Verdict.EXPIRED))
        counts[Verdict.UNAUDITABLE] = len(read.foreign)
    elif name == COMPACTED:
        counts[Verdict.MATCHED] = equal_newest(told.source[name], told.target[name])
    elif name == CLEAN:
        counts |= _in_traffic(read.pairs, outcome.scope)
    return truth, counts


def _in_traffic(pairs: Sequence[tuple[Stored, Stored]], scope: UnitScope) -> dict[Verdict, int]:
    """All were copied in the end; in time when they lie below the ends that the audit took."""
    source = {each.partition: each.end for each in scope.flows[0].partitions}
    target = {each.partition: each.end for each in scope.partitions}
    arrived = [
        copy.place.offset < target[copy.place.partition]
        for one, copy in pairs
        if scope.window.contains(one.content.timestamp)
        and one.place.offset < source[one.place.partition]
    ]
    return {Verdict.MATCHED: sum(arrived), Verdict.PENDING: len(arrived) - sum(arrived)}


def _overdue(told: Told) -> tuple[dict[Verdict, set[Found]], dict[Verdict, set[Found]]]:
    """What came after MirrorMaker 2 had stopped, and what the command's report names."""
    sent = told.story.injectors[STOPPED].copied
    true = {Found(Side.SOURCE, 0, offset) for offset in range(sent - AFTER_THE_STOP, sent)}
    found: defaultdict[Verdict, set[Found]] = defaultdict(set)
    for topic in told.stopped.report["topics"]:
        for each in topic["evidence"]:
            place = Found(Side(each["side"]), each["partition"], each["offset"])
            found[Verdict(each["verdict"])].add(place)
    return {Verdict.OVERDUE: true}, found


def equal_newest(source: list[Stored], target: list[Stored]) -> int:
    """Keys whose newest records on both sides are the same."""
    here, there = (
        {each.content.key: each.content for each in sorted(side, key=lambda one: one.place)}
        for side in (source, target)
    )
    return sum(there.get(key) == content for key, content in here.items())


def _latencies(told: Told) -> Iterator[tuple[str, Widths]]:
    for name, which in ((APPENDED, "end_to_end"), (STAMPED, "transfer")):
        outcome = told.audited.unstamped[told.story.copy(name)]
        kind = which.replace("_", " ")
        yield (
            f"lab, polls every {_POLL_MS} ms, {kind}",
            widths(outcome, which, true_bounds(told, name, which)),
        )


def true_bounds(told: Told, name: str, which: str) -> Truth:
    """From stamps, which come before a record can be read, and from what the witness had.

    All clocks are one, so nothing arrives before it is there.
    """
    pairs, had = told.reads[name].pairs, told.arrivals[name]
    produced = which == "end_to_end"
    least = (
        copy.content.timestamp
        - (source.content.timestamp if produced else had.source[source.place])
        for source, copy in pairs
    )
    greatest = (had.target[copy.place] - source.content.timestamp for source, copy in pairs)
    return Truth(sorted(max(0, each) for each in least), sorted(greatest))
