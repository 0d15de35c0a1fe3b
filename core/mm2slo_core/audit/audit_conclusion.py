"""The result of an audit run: exit code, complete up to, one line of text; and its rates.

Only settled records count: pending and unauditable ones are undecided, and expired ones were never
compared. An overdue record has not arrived, so it counts as lost.

Rates of keys: keys are sampled whole and their records have correlated outcomes, so records are not
independent draws: an interval that assumes independence would be far too narrow. Resampling keys
avoids this (cluster bootstrap of a ratio; Davison and Hinkley, Bootstrap Methods and their
Application, 3.8).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from mm2slo_core.audit.audit_scope import NotAudited
from mm2slo_core.audit.confidence_bounds import (
    Interval,
    clopper_pearson,
    cluster_bootstrap,
    percent,
    plural,
    spread,
)
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import FAULTS, AffinityOutcome, UnitOutcome, Verdict
from mm2slo_core.topology import Flow

MAX_DUPLICATE_RATIO: Final = 0.001

_FINDINGS: Final = (
    Verdict.LATE,
    Verdict.DUPLICATE,
    Verdict.REPLAY,
    Verdict.EXTRA,
    Verdict.OUT_OF_ORDER,
    Verdict.PENDING,
    Verdict.UNAUDITABLE,
)


class Result(StrEnum):
    CLEAN = "clean"
    DUPLICATED = "duplicated"
    """No faults, but a topic with more duplicates than tolerated."""
    FAULTS = "faults"
    NOTHING_AUDITED = "nothing audited"


@dataclass(frozen=True, slots=True)
class DuplicateLimit:
    """How many duplicates are normal, and whether more fail the run."""

    max_ratio: float = MAX_DUPLICATE_RATIO
    """Share of the replicated records of a topic that have any."""
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    result: Result
    exit_code: int
    """0 no faults, 1 faults found, 2 nothing could be audited."""
    complete_up_to: int | None
    """Epoch ms: all audited records with an earlier timestamp are replicated or reported as a
    fault; not the unauditable ones. None: nothing could be audited."""
    line: str
    """The result in one line."""
    by_flow: Mapping[Flow, int] = field(default_factory=dict)
    """`complete_up_to` of each flow with an audited record."""


def conclude(
    outcomes: Sequence[UnitOutcome],
    not_audited: Sequence[NotAudited],
    *,
    sample: Sample | None = None,
    duplicates: DuplicateLimit | None = None,
    known: int | None = None,
) -> Conclusion:
    """Conclude a run. Topics that were not audited fail it only if no other was.

    With *sample* the line has the sample rate. *known*: up to when earlier runs were complete.
    """
    judged = [outcome for outcome in outcomes if _judged_any(outcome)]
    if not judged:
        line = _nothing_line(outcomes, not_audited, sample, known)
        return Conclusion(Result.NOTHING_AUDITED, 2, None, line)
    by_flow: dict[Flow, int] = {}
    for outcome in judged:
        until = complete_up_to(outcome)
        for each in outcome.scope.flows:
            by_flow[each.flow] = min(until, by_flow.get(each.flow, until))
    counts: Counter[Verdict] = Counter()
    for outcome in judged:
        counts.update(outcome.counts)
    # Whoever relies on it reads all flows: the run is complete up to where its slowest flow is.
    overall = min(by_flow.values())
    limit = duplicates or DuplicateLimit()
    duplicated = _duplicated(judged, limit)
    if faults := _counted(counts, (verdict for verdict in Verdict if verdict in FAULTS)):
        result, stated = Result.FAULTS, f"faults: {', '.join(faults)}"
    elif duplicated:
        result, stated = Result.DUPLICATED, duplicated
    else:
        result, stated = Result.CLEAN, "clean"
    failed = bool(faults) or bool(duplicated and limit.fails)
    line = "; ".join([stated, *_parts(judged, counts, sample, len(not_audited))])
    # Unauditable records stay so: no later run would be complete if they held this one back.
    line = f"{line}; complete up to {_utc(overall)}{_except_unauditable(outcomes)}"
    return Conclusion(result, int(failed), overall, line, by_flow)


def complete_up_to(outcome: UnitOutcome) -> int:
    """Return the end of the window, or the oldest pending or overdue record; epoch ms."""
    end = outcome.scope.window.end
    return end if outcome.oldest_open is None else min(end, outcome.oldest_open)


def _judged_any(outcome: UnitOutcome) -> bool:
    counts = outcome.counts
    return any(count for verdict, count in counts.items() if verdict is not Verdict.UNAUDITABLE)


def _parts(
    judged: Iterable[UnitOutcome],
    counts: Counter[Verdict],
    sample: Sample | None,
    not_audited: int,
) -> Iterable[str]:
    yield f"{counts[Verdict.MATCHED]:,} matched{_in_sample(sample)}"
    if findings := _counted(counts, _FINDINGS):
        yield ", ".join(findings)
    keys: Counter[str] = Counter()
    for outcome in judged:
        keys["split"] += outcome.affinity.keys_split
        keys["out of order"] += outcome.affinity.keys_disordered
    for what, count in keys.items():
        if count:
            yield f"{plural(count, 'key')} {what}"
    if not_audited:
        yield f"{plural(not_audited, 'topic')} not audited"


def _except_unauditable(outcomes: Iterable[UnitOutcome]) -> str:
    """Return ", except 7 unauditable source records", if any, also of topics with only these."""
    # Those of no flow are copies whose source records are gone: they are replicated.
    count = sum(
        part.counts.get(Verdict.UNAUDITABLE, 0)
        for outcome in outcomes
        for part in outcome.partitions
        if part.flow is not None
    )
    return f", except {plural(count, 'unauditable source record')}" if count else ""


def _in_sample(sample: Sample | None) -> str:
    """Return " in a sample of 1%"; empty for a census."""
    if sample is None or sample.census:
        return ""
    return f" in a sample of {sample.rate * 100:g}%"


def _duplicated(judged: Iterable[UnitOutcome], limit: DuplicateLimit) -> str:
    """Return the topic with the highest share of duplicates, if it is above *limit*."""
    ratios = {
        rate.estimate: outcome.scope.target_topic
        for outcome in judged
        if (
            rate := record_rates(outcome.counts, outcome.copied_again, census=True).get(
                Verdict.DUPLICATE
            )
        )
    }
    worst = max(ratios, default=0.0)
    if worst <= limit.max_ratio:
        return ""
    return f"duplicated: {percent(worst)} of {ratios[worst]}, above {percent(limit.max_ratio)}"


def _counted(counts: Mapping[Verdict, int], verdicts: Iterable[Verdict]) -> list[str]:
    return [f"{counts[each]:,} {each}" for each in verdicts if counts.get(each)]


def _nothing_line(
    outcomes: Sequence[UnitOutcome],
    not_audited: Sequence[NotAudited],
    sample: Sample | None,
    known: int | None,
) -> str:
    reasons = Counter(each.reason.value for each in not_audited)
    parts = [f"{plural(count, 'topic')} {reason}" for reason, count in sorted(reasons.items())]
    unauditable = sum(outcome.counts.get(Verdict.UNAUDITABLE, 0) for outcome in outcomes)
    if unauditable:
        parts.append(f"{unauditable:,} {Verdict.UNAUDITABLE}")
    # Topics without a record in the window are not audited, so these were read.
    if sampled := _in_sample(sample) if any(not each.counts for each in outcomes) else "":
        parts.append(f"no record of the window{sampled}: set a larger --sample")
    why = ", ".join(parts) or "no record in the window"
    until = ": unknown" if known is None else f" {_utc(known)}"
    return f"nothing could be audited: {why}; complete up to{until}"


def _utc(epoch_ms: int) -> str:
    """Format in whole seconds, rounded down, so that all earlier records are complete."""
    return datetime.fromtimestamp(epoch_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_SETTLED: Final = (
    Verdict.MATCHED,
    Verdict.LATE,
    Verdict.LOST,
    Verdict.OVERDUE,
    Verdict.MOVED,
    Verdict.ALTERED,
)

ABSENT: Final = (Verdict.LOST, Verdict.OVERDUE)
"""Verdicts on settled records that have not arrived."""

_OF_A_CENSUS: Final = Verdict.ALTERED
"""A sample draws the altered copy independently, so for it the record is lost."""


class Rate(NamedTuple):
    """*events* in *n* records or keys; *n* is above 0."""

    events: int
    n: int

    @property
    def estimate(self) -> float:
        return self.events / self.n

    def interval(self, *, census: bool) -> Interval:
        """Return the 95 % confidence interval; for a census the rate itself."""
        return Interval(self.estimate, self.estimate) if census else clopper_pearson(*self)


def record_rates(
    counts: Mapping[Verdict, int], copied_again: int, *, census: bool
) -> Mapping[Verdict, Rate]:
    """Return the rates in *counts*, without rates of no records.

    Lost (with overdue), altered and moved records are relative to settled source records;
    *copied_again*, the records with duplicates or replays, to replicated ones. Copies are not
    counted: a sample draws those of a record together, so they are not independent.
    """
    settled = sum(counts.get(verdict, 0) for verdict in _SETTLED)
    absent = sum(counts.get(verdict, 0) for verdict in ABSENT)
    copied = settled - absent
    rates = {
        verdict: Rate(events, settled)
        for verdict, events in (
            (Verdict.LOST, absent),
            (Verdict.ALTERED, counts.get(Verdict.ALTERED, 0)),
            (Verdict.MOVED, counts.get(Verdict.MOVED, 0)),
        )
        if settled and (census or verdict is not _OF_A_CENSUS)
    }
    if copied:
        rates[Verdict.DUPLICATE] = Rate(min(copied_again, copied), copied)
    return rates


MIN_KEYS: Final = 10
"""Least number of keys with an event for a bootstrap."""

_Cluster = tuple[int, int, int]
"""Keys, their events, their records."""


@dataclass(frozen=True, slots=True)
class KeyRate:
    """Events per record, of all keys or of a sample."""

    events: int
    records: int
    keys: int
    keys_with_event: int
    """Keys with an event."""
    census: bool
    interval: Interval | None
    """Only for a sample; None: too few keys have an event."""

    @property
    def rate(self) -> float:
        return self.events / self.records


def moved_rate(affinity: AffinityOutcome, *, census: bool, seed: int) -> KeyRate | None:
    """Return the copies in a wrong partition, per copy. None: no copy was compared."""
    cells = [(each.keys, each.moved, each.copies) for each in affinity.cells]
    return _rate(cells, affinity.keys_split, census=census, seed=seed)


def disorder_rate(affinity: AffinityOutcome, *, census: bool, seed: int) -> KeyRate | None:
    """Return the records whose copy precedes that of an earlier one of their key, per record.

    Only if order is judged. None: no record was compared.
    """
    cells = [(each.keys, each.overtook, each.records) for each in affinity.cells]
    return _rate(cells, affinity.keys_disordered, census=census, seed=seed)


def rate_statement(what: str, rate: KeyRate, *, noun: str) -> str:
    """Return "copies in another partition: 0.5% (95 %: 0.3% to 0.8%, bootstrap over 99 keys)".

    *noun* is the verdict of the records. A sample without events does not bound the rate of
    records, because the keys that were not drawn may be the large ones; it bounds that of keys.
    """
    if rate.census:
        counted = f"census of {plural(rate.records, 'record')}, {rate.events:,} {noun}"
        return f"{what}: {percent(rate.rate)} ({counted})"
    if rate.interval is None:
        counted = f"{rate.events:,} of {rate.records:,} sampled"
        keys = plural(rate.keys_with_event, "key")
        return f"{what}: {counted}, in {keys}: too few keys for an interval"
    drawn = f"bootstrap over {plural(rate.keys, 'key')}"
    return f"{what}: {percent(rate.rate)} (95 %: {spread(rate.interval)}, {drawn})"


def _rate(
    cells: Sequence[_Cluster], keys_with_event: int, *, census: bool, seed: int
) -> KeyRate | None:
    records = sum(number for _, _, number in cells)
    if not records:
        return None
    # Resampling cannot draw a key that the sample lacks: from few keys with an event, its interval
    # would be too narrow, and zero wide from none.
    resampled = not census and keys_with_event >= MIN_KEYS
    return KeyRate(
        events=sum(number for _, number, _ in cells),
        records=records,
        keys=sum(number for number, _, _ in cells),
        keys_with_event=keys_with_event,
        census=census,
        interval=cluster_bootstrap(_clusters(cells), seed=seed) if resampled else None,
    )


def _clusters(cells: Sequence[_Cluster]) -> list[tuple[float, float]]:
    return [
        per_key
        for keys, events, records in cells
        for per_key in [(events / keys, records / keys)] * keys
    ]
