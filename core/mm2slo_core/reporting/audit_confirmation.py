"""Summary of audits for a report, to confirm the results of canaries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.record_verdict import ADDITIONAL, FAULTS, Verdict
from mm2slo_core.reporting.report_entry import Confirmation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_OPEN: Final = {Verdict.PENDING, Verdict.OVERDUE}

_EVER: Final = Window(0, 1 << 62)
_CENSUS: Final = Sample(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedUnit:
    """One topic in one audit of one flow. Times in epoch ms."""

    run_id: str
    complete_up_to: int | None
    counts: Mapping[Verdict, int]
    loss_below: float | None = None
    """With 95 % confidence; None for a census."""
    topic: str = ""
    started_at: int = 0
    window: Window = _EVER
    sample: Sample = _CENSUS
    oldest_open: int | None = None
    """Timestamp of the oldest pending or overdue record."""
    overdue_since: int | None = None
    """When the oldest overdue record became overdue."""

    def contains(self, start: int, end: int, sample: Sample) -> bool:
        """Whether it judged all records of *sample* from *start* to *end*."""
        nested = self.sample.salt == sample.salt and self.sample.rate >= sample.rate
        return (
            self.window.start <= start and end <= self.window.end and (nested or self.sample.census)
        )


def confirmation(units: Iterable[AuditedUnit], until: float = math.inf) -> Confirmation | None:
    """The summary of *units*; None without any.

    What a later audit judged again counts as that audit found it: records that arrived since are no
    faults any more. A record that became overdue at *until* or later is none yet. The bound is the
    weakest of all samples, because each applies to its own records only.
    """
    by_topic: defaultdict[str, list[AuditedUnit]] = defaultdict(list)
    for unit in sorted(units, key=lambda each: (each.started_at, each.run_id)):
        by_topic[unit.topic].append(unit)
    if not by_topic:
        return None
    known = [each for of_topic in by_topic.values() for each in _judged_last(of_topic)]
    counts: Counter[Verdict] = Counter()
    due: list[int] = []
    for unit in known:
        counts.update(unit.counts)
        if unit.overdue_since is not None and unit.overdue_since >= until:
            counts[Verdict.OVERDUE] -= unit.counts[Verdict.OVERDUE]
        elif unit.overdue_since is not None:
            due.append(unit.overdue_since)
    faults = {each.value: counts[each] for each in Verdict if each in FAULTS and counts[each]}
    bounds = [each.loss_below for each in known if each.loss_below is not None]
    up_to = _complete_up_to(known)
    judged = counts[Verdict.MATCHED] + counts[Verdict.LATE]
    judged += sum(counts[each] for each in FAULTS - ADDITIONAL)
    below = max(bounds) if bounds else None
    return Confirmation(
        audited_up_to=up_to,
        records=judged,
        faults=faults,
        loss_below=below,
        sentence=_sentence(up_to, judged, faults, min(due, default=None), below),
        run_ids=tuple(dict.fromkeys(each.run_id for each in known)),
    )


def _judged_last(units: Sequence[AuditedUnit]) -> Iterator[AuditedUnit]:
    """*units* of one topic, oldest run first, without what later ones judged again."""
    for number, unit in enumerate(units):
        later = units[number + 1 :]
        start, end = unit.window.start, unit.window.end
        is_faulty = any(unit.counts.get(each) for each in FAULTS)
        if is_faulty and any(each.contains(start, end, unit.sample) for each in later):
            continue
        opened = unit.oldest_open
        if opened is not None and any(each.contains(opened, end, unit.sample) for each in later):
            counts = {each: n for each, n in unit.counts.items() if each not in _OPEN}
            unit = replace(  # noqa: PLW2901 - the same unit, as far as it still counts
                unit, counts=counts, oldest_open=None, overdue_since=None
            )
        yield unit


def _complete_up_to(units: Iterable[AuditedUnit]) -> int | None:
    """Where the audits of all topics have come to, at most to the oldest open record."""
    reached: dict[str, int | None] = {}
    opened = [each.oldest_open for each in units if each.oldest_open is not None]
    for unit in units:
        before = reached.get(unit.topic)
        known = [each for each in (before, unit.complete_up_to) if each is not None]
        reached[unit.topic] = max(known, default=None)
    ends = [each for each in reached.values() if each is not None]
    return min(ends + opened) if len(ends) == len(reached) else None


def _sentence(
    up_to: int | None,
    judged: int,
    faults: Mapping[str, int],
    due: int | None,
    below: float | None,
) -> str:
    when = "audited" if up_to is None else f"audited up to {_minute(up_to)}"
    since = {} if due is None else {Verdict.OVERDUE.value: f" since {_minute(due)}"}
    named = (f"{count:,} {name}{since.get(name, '')}" for name, count in faults.items())
    found = ", ".join(named) or "0 lost"
    bound = "" if below is None else f", loss below {below * 100:.2g} % with 95 % confidence"
    return f"{when}: {found} of {judged:,}{bound}"


def _minute(epoch_ms: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
