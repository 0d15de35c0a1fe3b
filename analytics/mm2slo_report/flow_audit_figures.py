"""Audit figures of one flow, from the summaries in the results store (pure).

A topic fed by several flows counts for each of them; its latency histogram mixes them, so it counts
for none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mm2slo_core.audit.audit_conclusion import Rate, record_rates
from mm2slo_core.audit.confidence_bounds import Interval
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    EVIDENCED,
    PERCENTILES,
    SURPLUS,
    LatencyCells,
    Verdict,
    latency_percentile,
    merge_latencies,
)
from mm2slo_core.catalogue.service_metrics import KeyProperty, LatencyMeasure
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import Run, StoredUnit

_NOT_ON_SOURCE: Final = SURPLUS | {Verdict.OUT_OF_ORDER, Verdict.EXPIRED}
"""Each source record has one of the other verdicts; unauditable records are on both sides."""


class RateEstimate(NamedTuple):
    """The measured rate, and the confidence interval of the true rate, if known."""

    estimate: float
    interval: Interval | None


class LatencyEstimate(NamedTuple):
    """Bounds of a latency in seconds; lower is None if unknown."""

    lower: float | None
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFigures:
    """A flow in its newest finished audit."""

    run: Run
    counts: Mapping[Verdict, int]
    unaudited: int
    record_size: float | None
    """Mean bytes of a source record; None without records."""
    records: Mapping[Verdict, RateEstimate]
    keys: Mapping[KeyProperty, RateEstimate]
    latency: Mapping[LatencyMeasure, Mapping[float, LatencyEstimate]]
    """By quantile; only known ones."""
    evidence: Mapping[Verdict, int]
    """Anomalies with evidence."""
    unevidenced: Mapping[Verdict, int]
    """Anomalies without evidence."""


def audit_figures(
    run: Run, flow: Flow, units: Sequence[StoredUnit], evidence: Mapping[int, Mapping[Verdict, int]]
) -> AuditFigures:
    """Figures of *flow* from the *units* of *run* and their *evidence* counts."""
    own = [unit for unit in units if any(each.flow == flow for each in unit.flows)]
    counts: Counter[Verdict] = Counter()
    kept: Counter[Verdict] = Counter()
    for unit in own:
        counts.update(unit.counts)
        kept.update(evidence.get(unit.unit, {}))
    census = Sample(run.header.sample_rate).census
    return AuditFigures(
        run=run,
        counts={verdict: counts[verdict] for verdict in Verdict},
        unaudited=sum(unit.not_audited is not None for unit in own),
        record_size=_record_size(own),
        records={
            verdict: RateEstimate(rate.estimate, rate.interval(census=census))
            for verdict, rate in record_rates(
                counts, sum(unit.copied_again for unit in own), census=census
            ).items()
        },
        keys=_keys(own, census=census),
        latency={
            measure: percentiles(flow_latency(flow, own, measure), run)
            for measure in LatencyMeasure
        },
        evidence={verdict: kept[verdict] for verdict in Verdict if verdict in EVIDENCED},
        unevidenced={
            verdict: max(0, counts[verdict] - kept[verdict])
            for verdict in Verdict
            if verdict in EVIDENCED
        },
    )


def _record_size(units: Sequence[StoredUnit]) -> float | None:
    known = [unit for unit in units if not unit.counts.get(Verdict.UNAUDITABLE)]
    records = sum(
        count
        for unit in known
        for verdict, count in unit.counts.items()
        if verdict not in _NOT_ON_SOURCE
    )
    return sum(unit.source_bytes for unit in known) / records if records else None


def flow_latency(flow: Flow, units: Sequence[StoredUnit], measure: LatencyMeasure) -> LatencyCells:
    """Latencies of the topics that only *flow* feeds."""
    exclusive = [unit for unit in units if tuple(each.flow for each in unit.flows) == (flow,)]
    return merge_latencies(
        unit.end_to_end if measure is LatencyMeasure.END_TO_END else unit.transfer
        for unit in exclusive
    )


def percentiles(cells: LatencyCells, run: Run) -> Mapping[float, LatencyEstimate]:
    """By quantile, widened for a *run* with a sample; omits those of too few records."""
    found: dict[float, LatencyEstimate] = {}
    sampled = not Sample(run.header.sample_rate).census
    for q in PERCENTILES:
        bracket = latency_percentile(cells, q, sampled=sampled)
        if bracket is not None:
            lower = None if bracket.lower is None else bracket.lower / 1000
            found[q] = LatencyEstimate(lower, bracket.upper / 1000)
    return found


def _keys(units: Sequence[StoredUnit], *, census: bool) -> Mapping[KeyProperty, RateEstimate]:
    with_keys = [unit for unit in units if unit.affinity.keys]
    ordered = [unit for unit in with_keys if unit.order_judged]
    found = {}
    for key_property, several, events in (
        (KeyProperty.AFFINITY, with_keys, [unit.affinity.keys_split for unit in with_keys]),
        (KeyProperty.ORDER, ordered, [unit.affinity.keys_disordered for unit in ordered]),
    ):
        if several:
            rate = Rate(sum(events), sum(unit.affinity.keys for unit in several))
            # Topics may share keys, and sampling draws a key in all topics or in none.
            known = census or len(several) == 1
            found[key_property] = RateEstimate(
                rate.estimate, rate.interval(census=census) if known else None
            )
    return found
