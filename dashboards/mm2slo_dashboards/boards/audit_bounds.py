"""Between which bounds the figures of audits lie: shares of records and keys, and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.verdict import Verdict
from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.audited import (
    AUDIT_EVIDENCE_RECORDS,
    AUDIT_KEYS_RATIO,
    AUDIT_LATENCY_SECONDS,
    AUDIT_RECORDS_RATIO,
    AUDIT_SAMPLED_RATIO,
    AUDIT_UNEVIDENCED_RECORDS,
    Bound,
    Stretch,
)
from mm2slo_core.promql import equal, matching
from mm2slo_dashboards.boards.common import NO_AUDIT, latency_steps
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Column, Kind, Panel, Query, Steps, Unit
from mm2slo_dashboards.selecting import bottom, least, of_flow, top, total, worst
from mm2slo_dashboards.states import NEUTRAL

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric
    from mm2slo_core.promql import Matcher, Vector
    from mm2slo_dashboards.limits import Limits

Figure = tuple["Metric", tuple["Matcher", ...]]
"""A metric with bounds, and which of its figures."""

LOST: Final[Figure] = (AUDIT_RECORDS_RATIO, (equal("verdict", Verdict.LOST.value),))
SLOW: Final[Figure] = (
    AUDIT_LATENCY_SECONDS,
    (equal("stretch", Stretch.END_TO_END.value), equal("percentile", "p99")),
)
_USUAL_AND_SLOW: Final[Figure] = (AUDIT_LATENCY_SECONDS, (matching("percentile", "p50|p99"),))
_PROVEN: Final = Steps(Colour.GOOD, ((1e-9, Colour.WARNING),))
"""A lower bound above zero: it did happen."""
_NO_KEYS: Final = "No audit has judged a key: records have none, or no audit has ended."
_NO_LATENCY: Final = (
    "No audit knows when records arrived: that takes the exporter's watermark timeline, and "
    "enough records. Or no audit has ended."
)


def at_least(figure: Figure, *labels: str) -> Vector:
    """The lower bound, by *labels*."""
    return least(_bound(figure, Bound.LOWER), *labels)


def at_most(figure: Figure, *labels: str) -> Vector:
    """The upper bound, by *labels*."""
    return worst(_bound(figure, Bound.UPPER), *labels)


def rates() -> tuple[Panel, ...]:
    """Shares of records and of keys, how much was looked at, and how much evidence there is."""
    return (
        Panel(
            title="Which share was lost, altered, moved or copied again?",
            description="Of all records, with 95 % confidence; of a census exact. At least above "
            "0: it did happen. Altered is told by a census alone; a sample counts it as lost.",
            kind=Kind.TABLE,
            unit=Unit.SHARE,
            no_data=NO_AUDIT,
            keys={"flow": "Flow", "verdict": "Verdict"},
            columns=_shares((AUDIT_RECORDS_RATIO, ()), "flow", "verdict"),
            sort=("-At least", "-At most"),
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=14,
        ),
        Panel(
            title="Which share of the keys lost its partition or its order?",
            description="Of all keys, with 95 % confidence; of a census exact. A sample of several "
            "topics has no bounds: they may share keys.",
            kind=Kind.TABLE,
            unit=Unit.SHARE,
            no_data=_NO_KEYS,
            keys={"flow": "Flow", "broken": "Broken"},
            columns=_shares((AUDIT_KEYS_RATIO, ()), "flow", "broken"),
            sort=("-At least", "-At most"),
            leads=Identity.FLOW,
            alert="MM2AffinityBroken",
            width=10,
        ),
        Panel(
            title="How much could be lost, at most?",
            description="Upper bound of the share that is lost, with 95 % confidence; the ten "
            "highest. Without a loss it is above 0 as well: a larger sample brings it down.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_AUDIT,
            queries=(Query(vector=top(10, at_most(LOST, "flow")), legend="{{flow}}"),),
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=8,
        ),
        Panel(
            title="How much was looked at?",
            description="Share of the records that the newest audits compared; 100 % is a census. "
            "The ten smallest.",
            kind=Kind.BARS,
            unit=Unit.SHARE,
            no_data=NO_AUDIT,
            queries=(
                Query(
                    vector=bottom(10, least(of_flow(AUDIT_SAMPLED_RATIO), "flow")),
                    legend="{{flow}}",
                    instant=True,
                ),
            ),
            steps=NEUTRAL,
            least=0.0,
            most=1.0,
            leads=Identity.FLOW,
            width=8,
        ),
        Panel(
            title="Of how many anomalies is there evidence?",
            description="Anomalies that the newest audits name by offset, and those that they "
            "count alone: evidence is kept of so many per topic and verdict.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_AUDIT,
            queries=tuple(
                Query(
                    vector=total(worst(of_flow(metric), "flow", "verdict")),
                    legend=word,
                    instant=True,
                )
                for metric, word in (
                    (AUDIT_EVIDENCE_RECORDS, "named"),
                    (AUDIT_UNEVIDENCED_RECORDS, "counted alone"),
                )
            ),
            steps=NEUTRAL,
            decimals=0,
            leads=Identity.FLOW,
            alert="MM2RecordsLost",
            width=8,
        ),
    )


def latency(limits: Limits) -> tuple[Panel, ...]:
    """From the producer to the arrival, and from arrival to arrival."""
    labels = ("flow", "stretch", "percentile")
    steps = latency_steps(limits)
    return (
        Panel(
            title="Between which bounds do latencies lie?",
            description="Half of the records, and 99 of 100, took no longer: end to end from the "
            "producer's timestamp, transfer from the arrival on the source. An empty lower bound "
            "is not known.",
            kind=Kind.TABLE,
            unit=Unit.SECONDS,
            no_data=_NO_LATENCY,
            keys={"flow": "Flow", "stretch": "Stretch", "percentile": "Percentile"},
            columns=(
                Column(
                    title="At least",
                    vector=at_least(_USUAL_AND_SLOW, *labels),
                    unit=Unit.SECONDS,
                ),
                Column(
                    title="At most",
                    vector=at_most(_USUAL_AND_SLOW, *labels),
                    unit=Unit.SECONDS,
                    steps=steps,
                ),
            ),
            sort=("-At most",),
            leads=Identity.SLO,
            alert="MM2ErrorBudgetBurnFast",
            width=14,
        ),
        Panel(
            title="Which flows were slow, and when?",
            description="Upper bound of the end-to-end latency of 99 of 100 records in the newest "
            "audit, the ten slowest flows. Lines: the thresholds of the latency objectives.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=_NO_LATENCY,
            queries=(Query(vector=top(10, at_most(SLOW, "flow")), legend="{{flow}}"),),
            steps=steps,
            least=0.0,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetBurnFast",
            width=10,
        ),
    )


def _bound(figure: Figure, bound: Bound) -> Vector:
    metric, matchers = figure
    return of_flow(metric, *matchers, equal("bound", bound.value))


def _shares(figure: Figure, *labels: str) -> tuple[Column, ...]:
    return (
        Column(title="At least", vector=at_least(figure, *labels), unit=Unit.SHARE, steps=_PROVEN),
        Column(
            title="As counted",
            vector=worst(_bound(figure, Bound.ESTIMATE), *labels),
            unit=Unit.SHARE,
        ),
        Column(title="At most", vector=at_most(figure, *labels), unit=Unit.SHARE),
    )
