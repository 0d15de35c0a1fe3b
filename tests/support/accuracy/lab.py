"""The figures of the lab's story."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from audited import APPENDED, CLEAN, COMPACTED, EXPIRED, REPLAY, STAMPED, STOPPED, tell
from audited.play import AFTER_THE_STOP
from injecting import Found

from accuracy.classes import Tally
from accuracy.latency import Widths, widths
from mm2slo_core.audit.verdict import Verdict
from mm2slo_core.timeline_record import Side
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from audited import Told
    from injecting import Stored

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
        # Of those that were there when the audit looked, all were copied in the end.
        pending = outcome.counts.get(Verdict.PENDING, 0)
        ends = {each.partition: each.end for each in outcome.scope.flows[0].partitions}
        in_time = sum(
            outcome.scope.window.holds(one.content.timestamp)
            and one.place.offset < ends[one.place.partition]
            for one, _ in read.pairs
        )
        counts |= {Verdict.MATCHED: in_time - pending, Verdict.PENDING: pending}
    return truth, counts


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
        truth = [
            copy.content.timestamp - source.content.timestamp
            for source, copy in told.reads[name].pairs
        ]
        kind = which.replace("_", " ")
        yield f"lab, polls every {_POLL_MS} ms, {kind}", widths(outcome, which, truth)
