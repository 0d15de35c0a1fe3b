"""The result of an audit run: exit code, complete up to, and one line of text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.confidence_bounds import percent, plural
from mm2slo_core.audit.record_rates import record_rates
from mm2slo_core.audit.record_verdict import FAULTS, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.audit.audit_scope import NotAudited
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome
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
    """The verdict of a run."""

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
    """The result of an audit run."""

    result: Result
    exit_code: int
    """0 no faults, 1 faults found, 2 nothing could be audited."""
    complete_up_to: int | None
    """Epoch ms: all audited records with an earlier timestamp are replicated or reported as a
    fault. None: nothing could be audited."""
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
        line = _nothing_line(outcomes, not_audited, known)
        return Conclusion(Result.NOTHING_AUDITED, 2, None, line)
    by_flow: dict[Flow, int] = {}
    for outcome in judged:
        until = complete_up_to(outcome)
        for each in outcome.scope.flows:
            by_flow[each.flow] = min(until, by_flow.get(each.flow, until))
    counts: Counter[Verdict] = Counter()
    for outcome in judged:
        counts.update(outcome.counts)
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
    line = f"{line}; complete up to {_utc(overall)}"
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
    sampled = ""
    if sample is not None and not sample.census:
        sampled = f" in a sample of {sample.rate * 100:g}%"
    yield f"{counts[Verdict.MATCHED]:,} matched{sampled}"
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
    outcomes: Sequence[UnitOutcome], not_audited: Sequence[NotAudited], known: int | None
) -> str:
    reasons = Counter(each.reason.value for each in not_audited)
    parts = [f"{plural(count, 'topic')} {reason}" for reason, count in sorted(reasons.items())]
    unauditable = sum(outcome.counts.get(Verdict.UNAUDITABLE, 0) for outcome in outcomes)
    if unauditable:
        parts.append(f"{unauditable:,} {Verdict.UNAUDITABLE}")
    why = ", ".join(parts) or "no record in the window"
    until = ": unknown" if known is None else f" {_utc(known)}"
    return f"nothing could be audited: {why}; complete up to{until}"


def _utc(epoch_ms: int) -> str:
    """Format in whole seconds, rounded down, so that all earlier records are complete."""
    return datetime.fromtimestamp(epoch_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
