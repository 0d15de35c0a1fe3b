"""What an audit says of one flow, from the summaries in the results store (pure).

A topic that several flows feed counts for each of them; its latency for none, for its histogram
is of all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.audit.latency_histogram import PERCENTILES, merge, percentile
from mm2slo_core.audit.record_rates import Rate, record_rates
from mm2slo_core.audit.sampling import Sample
from mm2slo_core.audit.verdict import EVIDENCED, Verdict
from mm2slo_core.catalogue.audited import Broken, Stretch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.audit.bounds import Interval
    from mm2slo_core.audit.outcome import LatencyCells
    from mm2slo_core.topology import Flow
    from mm2slo_store.rows import Run, StoredUnit


class Known(NamedTuple):
    """A rate as counted, and between which bounds that of all lies; None: not known."""

    estimate: float
    interval: Interval | None


class Seconds(NamedTuple):
    """A latency between two bounds; lower None: not known."""

    lower: float | None
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFigures:
    """One flow in its newest finished audit."""

    run: Run
    counts: Mapping[Verdict, int]
    """By each verdict there is."""
    unaudited: int
    """Topics."""
    records: Mapping[Verdict, Known]
    keys: Mapping[Broken, Known]
    latency: Mapping[Stretch, Mapping[float, Seconds]]
    """By quantile; those that are known."""
    evidence: Mapping[Verdict, int]
    """Anomalies that are named."""
    unevidenced: Mapping[Verdict, int]
    """Anomalies that are counted alone."""


def audit_figures(
    run: Run, flow: Flow, units: Sequence[StoredUnit], evidence: Mapping[int, Mapping[Verdict, int]]
) -> AuditFigures:
    """Of *flow*, by the *units* of *run* that it feeds and the *evidence* of each."""
    own = [unit for unit in units if any(each.flow == flow for each in unit.flows)]
    counts: Counter[Verdict] = Counter()
    kept: Counter[Verdict] = Counter()
    for unit in own:
        counts.update(unit.counts)
        kept.update(evidence.get(unit.unit, {}))
    census = is_census(run)
    return AuditFigures(
        run=run,
        counts={verdict: counts[verdict] for verdict in Verdict},
        unaudited=sum(unit.not_audited is not None for unit in own),
        records={
            verdict: Known(rate.estimate, rate.interval(census=census))
            for verdict, rate in record_rates(counts, census=census).items()
        },
        keys=_keys(own, census=census),
        latency={stretch: percentiles(latency_of(flow, own, stretch), run) for stretch in Stretch},
        evidence={verdict: kept[verdict] for verdict in Verdict if verdict in EVIDENCED},
        unevidenced={
            verdict: max(0, counts[verdict] - kept[verdict])
            for verdict in Verdict
            if verdict in EVIDENCED
        },
    )


def is_census(run: Run) -> bool:
    """Whether the run looked at every record."""
    return Sample(run.header.sample_rate).census


def latency_of(flow: Flow, units: Sequence[StoredUnit], stretch: Stretch) -> LatencyCells:
    """The latencies of what *flow* alone feeds."""
    alone = [unit for unit in units if tuple(each.flow for each in unit.flows) == (flow,)]
    return merge(
        unit.end_to_end if stretch is Stretch.END_TO_END else unit.transfer for unit in alone
    )


def percentiles(cells: LatencyCells, run: Run) -> Mapping[float, Seconds]:
    """By quantile, widened where *run* took a sample; without those of too few records."""
    found: dict[float, Seconds] = {}
    for q in PERCENTILES:
        bracket = percentile(cells, q, sampled=not is_census(run))
        if bracket is not None:
            lower = None if bracket.lower is None else bracket.lower / 1000
            found[q] = Seconds(lower, bracket.upper / 1000)
    return found


def _keys(units: Sequence[StoredUnit], *, census: bool) -> Mapping[Broken, Known]:
    with_keys = [unit for unit in units if unit.affinity.keys]
    ordered = [unit for unit in with_keys if unit.order_judged]
    found = {}
    for broken, several, events in (
        (Broken.AFFINITY, with_keys, [unit.affinity.keys_split for unit in with_keys]),
        (Broken.ORDER, ordered, [unit.affinity.keys_disordered for unit in ordered]),
    ):
        if several:
            rate = Rate(sum(events), sum(unit.affinity.keys for unit in several))
            # Topics may share keys, and a sample draws a key in all topics or in none.
            known = census or len(several) == 1
            found[broken] = Known(rate.estimate, rate.interval(census=census) if known else None)
    return found
