"""The result of an audit run: exit code, complete up to, and one line of text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.record_verdict import FAULTS, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.audit.audit_scope import NotAudited
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_core.topology import Flow

CLEAN: Final = 0
FAULTY: Final = 1
NOTHING_AUDITED: Final = 2

_FINDINGS: Final = (
    Verdict.LATE,
    Verdict.DUPLICATE,
    Verdict.REPLAY,
    Verdict.EXTRA,
    Verdict.OUT_OF_ORDER,
    Verdict.PENDING,
    Verdict.UNAUDITABLE,
)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The result of an audit run."""

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
) -> Conclusion:
    """Conclude a run. Topics that were not audited fail it only if no other was.

    With *sample* the line has the sample rate.
    """
    judged = [outcome for outcome in outcomes if _judged_any(outcome)]
    if not judged:
        return Conclusion(NOTHING_AUDITED, None, _nothing_line(outcomes, not_audited))
    by_flow: dict[Flow, int] = {}
    for outcome in judged:
        until = complete_up_to(outcome)
        for each in outcome.scope.flows:
            by_flow[each.flow] = min(until, by_flow.get(each.flow, until))
    counts: Counter[Verdict] = Counter()
    for outcome in judged:
        counts.update(outcome.counts)
    overall = min(by_flow.values())
    exit_code = FAULTY if any(counts[fault] for fault in FAULTS) else CLEAN
    line = "; ".join(_parts(judged, counts, sample, len(not_audited)))
    return Conclusion(exit_code, overall, f"{line}; complete up to {_utc(overall)}", by_flow)


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
    faults = _counted(counts, (verdict for verdict in Verdict if verdict in FAULTS))
    yield f"faults: {', '.join(faults)}" if faults else "clean"
    sampled = "" if sample is None or sample.census else f" in a sample of {sample.rate * 100:g}%"
    yield f"{counts[Verdict.MATCHED]:,} matched{sampled}"
    if findings := _counted(counts, _FINDINGS):
        yield ", ".join(findings)
    keys: Counter[str] = Counter()
    for outcome in judged:
        keys["split"] += outcome.affinity.keys_split
        keys["out of order"] += outcome.affinity.keys_disordered
    for what, count in keys.items():
        if count:
            yield f"{_plural(count, 'key')} {what}"
    if not_audited:
        yield f"{_plural(not_audited, 'topic')} not audited"


def _counted(counts: Mapping[Verdict, int], verdicts: Iterable[Verdict]) -> list[str]:
    return [f"{counts[each]:,} {each}" for each in verdicts if counts.get(each)]


def _nothing_line(outcomes: Sequence[UnitOutcome], not_audited: Sequence[NotAudited]) -> str:
    reasons = Counter(each.reason.value for each in not_audited)
    parts = [f"{_plural(count, 'topic')} {reason}" for reason, count in sorted(reasons.items())]
    unauditable = sum(outcome.counts.get(Verdict.UNAUDITABLE, 0) for outcome in outcomes)
    if unauditable:
        parts.append(f"{unauditable:,} {Verdict.UNAUDITABLE}")
    why = ", ".join(parts) or "no record in the window"
    return f"nothing could be audited: {why}; complete up to: unknown"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _utc(epoch_ms: int) -> str:
    """Format in whole seconds, rounded down, so that all earlier records are complete."""
    return datetime.fromtimestamp(epoch_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
