"""One objective as a typed response; CSV takes its values from it too."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import Field

from mm2slo_core.objectives import Severity
from mm2slo_core.objectives.quantity_text import plain as plain_share
from mm2slo_core.objectives.slo_status import Reason, Status
from mm2slo_core.reporting.report_entry import PairState, WindowKind
from mm2slo_core.sli_counters import Sli
from mm2slo_report.rendering import sli_descriptions
from mm2slo_report.rendering.references import References
from mm2slo_report.rendering.response_model import (
    Count,
    Figure,
    Instant,
    MaybeInstant,
    MaybeText,
    ResponseModel,
)

if TYPE_CHECKING:
    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting import report_entry
    from mm2slo_core.sli_counters import SliKey

NO_REFERENCES: Final = References()
_DIGEST: Final = 12


class FlowNames(ResponseModel):
    name: Annotated[str, Field(validation_alias="label")]
    slug: str
    source: str
    target: str


class Indicator(ResponseModel):
    type: Sli
    tier: str
    name: str
    description: str
    method: Annotated[str, Field(description="events, or slices of time.")]
    unit: Annotated[str, Field(description="What an event is.")]
    threshold_seconds: float | None

    @classmethod
    def of(cls, key: SliKey) -> Self:
        described = sli_descriptions.sli_description(key)
        return cls(
            type=key.sli,
            tier=key.tier,
            name=sli_descriptions.name(key),
            threshold_seconds=sli_descriptions.threshold(key),
            **described._asdict(),
        )


class Window(ResponseModel):
    name: str
    kind: WindowKind
    duration_seconds: Annotated[
        float,
        Field(
            validation_alias="seconds",
            description="Nominal: of the whole month in a running month.",
        ),
    ]
    start: Instant
    end: Instant


class Events(ResponseModel):
    good: Count
    bad: Count
    total: Count
    unknown: Count
    excluded: Count


class Budget(ResponseModel):
    """The error budget of the whole window."""

    allowed_error_ratio: float
    consumed_ratio: Figure
    remaining_ratio: Annotated[Figure, Field(description="Negative if overspent.")]
    total_events: Count
    remaining_events: Count
    total_seconds: Annotated[float, Field(description="Of total outage.")]
    remaining_seconds: Figure
    is_estimate: Annotated[bool, Field(description="Whether the seconds are estimated.")]


class WindowPair(ResponseModel):
    """A pair burns if both windows burn faster than the threshold."""

    name: str
    severity: Severity
    long_seconds: float
    short_seconds: float
    long_burn_rate: Annotated[Figure, Field(validation_alias="long")]
    short_burn_rate: Annotated[Figure, Field(validation_alias="short")]
    threshold: Annotated[float, Field(validation_alias="factor", description="A burn rate.")]
    state: PairState
    since: MaybeInstant


class Coverage(ResponseModel):
    ratio: Annotated[Figure, Field(validation_alias="window")]
    last_hour_ratio: Annotated[Figure, Field(validation_alias="hour")]
    expected_samples: Annotated[int, Field(validation_alias="expected_minutes")]
    samples: Annotated[int, Field(validation_alias="minutes")]
    known_since: MaybeInstant


class Trend(ResponseModel):
    """The previous window, and the change since."""

    start: Instant
    end: Instant
    sli_ratio: Figure
    sli_ratio_change: Figure
    remaining_ratio: Figure
    coverage_ratio: Figure


class Confirmation(ResponseModel):
    """Audits of the flow in the window."""

    audited_up_to: MaybeInstant
    records: int
    faults: dict[str, int]
    loss_below_ratio: Annotated[
        Figure, Field(validation_alias="loss_below", description="With 95 % confidence.")
    ]
    sentence: str
    run_ids: tuple[str, ...]


class EntryLinks(ResponseModel):
    self: str | None
    dashboard: str | None
    runbook: str | None
    prometheus: str | None


class Entry(ResponseModel):
    """One objective as of one instant."""

    id: str
    flow: FlowNames
    sli: Indicator
    objective_ratio: float
    window: Window
    as_of: Instant
    status: Status
    status_reason: Reason
    status_pair: MaybeText
    is_current: bool
    stale_since: MaybeInstant
    sli_ratio: Figure
    events: Events
    budget: Budget
    burn_rate: Annotated[dict[str, Figure], Field(description="By window.")]
    time_to_exhaustion_seconds: Figure
    projected_remaining_ratio: Annotated[Figure, Field(description="At the end of the window.")]
    alerts: tuple[WindowPair, ...]
    coverage: Coverage
    trend_vs_previous_window: Trend | None
    audit: Confirmation | None
    owner: MaybeText
    links: EntryLinks
    spec_hash: Annotated[str, Field(description="Equal for equal objectives.")]
    rules_version: str | None
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @classmethod
    def of(cls, entry: report_entry.Entry, references: References = NO_REFERENCES) -> Self:
        objective, service = entry.objective, references.service
        counts = ("good", "bad", "total", "unknown")
        return cls.model_validate(
            {
                "id": entry.id,
                "flow": objective.flow,
                "sli": Indicator.of(objective.key),
                "objective_ratio": objective.target,
                "window": entry.window,
                "as_of": entry.as_of,
                "status": entry.status,
                "status_reason": entry.reason,
                "status_pair": entry.pair,
                "is_current": entry.is_current,
                "stale_since": entry.stale_since,
                "sli_ratio": entry.ratio,
                "events": {
                    **{name: getattr(entry.counts, name) for name in counts},
                    "excluded": entry.excluded.total,
                },
                "budget": _budget(entry),
                "burn_rate": dict(entry.burn_rates),
                "time_to_exhaustion_seconds": entry.exhaustion_seconds,
                "projected_remaining_ratio": entry.projected_remaining,
                "alerts": entry.pairs,
                "coverage": entry.coverage,
                "trend_vs_previous_window": _trend(entry, entry.before),
                "audit": entry.confirmation,
                "owner": objective.owner,
                "links": {
                    "self": None if service is None else f"{service}/slo/{entry.id}",
                    "dashboard": references.dashboard,
                    "runbook": references.runbook,
                    "prometheus": references.prometheus,
                },
                "spec_hash": _spec_hash(objective),
                "rules_version": references.rules_version,
                "warnings": entry.warnings,
                "errors": entry.errors,
            }
        )


def _budget(entry: report_entry.Entry) -> dict[str, Any]:
    budget, remaining = entry.budget, entry.budget.remaining_minutes
    # Decimal gives 0.001 where floats give 0.0010000000000000009.
    exact = 1 - Decimal(repr(entry.objective.target))
    return {
        "allowed_error_ratio": float(exact),
        "consumed_ratio": budget.consumed,
        "remaining_ratio": budget.remaining,
        "total_events": budget.total_events,
        "remaining_events": budget.remaining_events,
        "total_seconds": float(exact * Decimal(repr(budget.seconds))),
        "remaining_seconds": None if remaining is None else remaining * 60,
        "is_estimate": budget.minutes_are_estimate,
    }


def _trend(
    entry: report_entry.Entry, before: report_entry.Comparison | None
) -> dict[str, Any] | None:
    if before is None:
        return None
    return {
        "start": before.start,
        "end": before.end,
        "sli_ratio": before.ratio,
        "sli_ratio_change": None if entry.ratio is None else entry.ratio - before.ratio,
        "remaining_ratio": before.remaining,
        "coverage_ratio": before.coverage,
    }


@lru_cache(maxsize=4096)
def _spec_hash(objective: Objective) -> str:
    """Hash of the objective: equal hashes mean equal objectives."""
    identity = (
        objective.flow.label,
        objective.key.sli.value,
        objective.key.tier,
        plain_share(objective.target),
        objective.window,
    )
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_DIGEST]
