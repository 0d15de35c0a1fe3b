"""Summary of audits for a report, to confirm the results of canaries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mm2slo_core.audit.record_verdict import ADDITIONAL, FAULTS, Verdict
from mm2slo_core.reporting.report_entry import Confirmation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedUnit:
    """One unit of an audit of one flow."""

    run_id: str
    complete_up_to: int | None
    counts: Mapping[Verdict, int]
    loss_below: float | None = None
    """With 95 % confidence; None for a census."""


def confirmation(units: Iterable[AuditedUnit]) -> Confirmation | None:
    """The summary of *units*; None without any.

    The bound is the weakest of all samples, because each applies to its own records only.
    """
    known = tuple(units)
    if not known:
        return None
    counts: Counter[Verdict] = Counter()
    for unit in known:
        counts.update(unit.counts)
    faults = {each.value: counts[each] for each in Verdict if each in FAULTS and counts[each]}
    bounds = [each.loss_below for each in known if each.loss_below is not None]
    reached = [each.complete_up_to for each in known if each.complete_up_to is not None]
    up_to = min(reached) if len(reached) == len(known) else None
    judged = counts[Verdict.MATCHED] + counts[Verdict.LATE]
    judged += sum(counts[each] for each in FAULTS - ADDITIONAL)
    below = max(bounds) if bounds else None
    return Confirmation(
        audited_up_to=up_to,
        records=judged,
        faults=faults,
        loss_below=below,
        sentence=_sentence(up_to, judged, faults, below),
        run_ids=tuple(dict.fromkeys(each.run_id for each in known)),
    )


def _sentence(
    up_to: int | None, judged: int, faults: Mapping[str, int], below: float | None
) -> str:
    when = "audited"
    if up_to is not None:
        when = f"audited up to {datetime.fromtimestamp(up_to / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    found = ", ".join(f"{count:,} {name}" for name, count in faults.items()) or "0 lost"
    bound = "" if below is None else f", loss below {below * 100:.2g} % with 95 % confidence"
    return f"{when}: {found} of {judged:,}{bound}"
