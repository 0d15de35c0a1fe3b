"""Formats figures as text, the same in all report formats (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_audit.run.time_span import format_utc
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.audit.latency_histogram import percentile_name
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from mm2slo_audit.report.audit_figures import Latency, Throughput
    from mm2slo_audit.run.run_report import RunReport
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.latency_histogram import Bracket
    from mm2slo_core.audit.unit_outcome import AffinityOutcome, Evidence

UNKNOWN: Final = "-"
_TWO_DIGITS: Final = 10
"""Values below are shown with a decimal."""


def format_bracket(found: Bracket | None) -> str:
    """`14-120 ms`, `<= 120 ms` without a lower bound, `-` if unknown."""
    if found is None:
        return UNKNOWN
    size, unit = _unit(found.upper)
    digits = 1 if size > 1 and found.upper / size < _TWO_DIGITS else 0
    upper = f"{found.upper / size:,.{digits}f}"
    if found.lower is None or found.lower <= 0:
        return f"<= {upper} {unit}"
    lower = f"{found.lower / size:,.{digits}f}"
    return f"{upper} {unit}" if lower == upper else f"{lower}-{upper} {unit}"


def format_affinity(found: AffinityOutcome) -> str:
    """How many keys have broken affinity or order."""
    if not found.keys:
        return UNKNOWN
    broken = found.keys_split + found.keys_disordered
    return f"{broken:,} of {found.keys:,}"


def format_throughput(found: Throughput) -> str:
    """`1,234 records/s, 56.7 kB/s`."""
    return f"{_rate(found.records)} records/s, {_bytes(found.size)}/s"


def format_window(report: RunReport) -> str:
    return f"{format_utc(report.window.start)} to {format_utc(report.window.end)}"


def format_coverage(report: RunReport) -> str:
    """Whether the run was a census or a sample, and how much it read."""
    sample = report.sample
    if sample.census:
        text = "census: every record of the window was compared"
    else:
        text = (
            f"sample: {sample.rate * 100:g}% of the records, chosen by hash, the same on both sides"
        )
    about = "" if sample.census else "about "
    return f"{text}; {about}{_bytes(report.bytes_read)} read"


def format_duration(milliseconds: float) -> str:
    """`4.2 s`, `3 min 20 s`."""
    seconds = milliseconds / 1000
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def format_evidence(scope: UnitScope, each: Evidence) -> str:
    """Where a record of the evidence and its counterpart are."""
    target = f"{scope.flows[0].flow.target} {scope.target_topic}"
    flow = scope.flows[each.flow]
    source = f"{flow.flow.source} {flow.source_topic}"
    topic = source if each.side is Side.SOURCE else target
    text = f"{topic}-{each.partition} offset {each.offset}, timestamp {format_utc(each.timestamp)}"
    if each.other_partition is not None and each.other_offset is not None:
        text += f"; its copy: {target}-{each.other_partition} offset {each.other_offset}"
    return text


def _unit(ms: float) -> tuple[float, str]:
    for limit, size, unit in ((1e3, 1, "ms"), (1.2e5, 1e3, "s"), (7.2e6, 6e4, "min")):
        if ms < limit:
            return size, unit
    return 3.6e6, "h"


def _rate(per_second: float) -> str:
    return f"{per_second:.1f}" if per_second < _TWO_DIGITS else f"{per_second:,.0f}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def format_latency(name: str, found: Latency) -> str:
    """`end to end: p50 3 ms, p99 14-120 ms, average 5 ms (1,234 records)`."""
    if not found.records:
        return f"{name}: unknown"
    parts = [
        f"{percentile_name(q)} {format_bracket(value)}"
        for q, value in found.percentiles.items()
        if value is not None
    ]
    parts.append(f"average {format_bracket(found.average)}")
    return f"{name}: {', '.join(parts)} ({plural(found.records, 'record')})"
