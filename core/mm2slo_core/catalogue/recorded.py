"""Series that Prometheus records from the metrics: names, labels and meaning.

The level word is `flow:`. Windows stand in the name, as production has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue.model import FLOW_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

SLI_LABELS: Final = (*FLOW_LABELS, "sli", "tier")
"""On every recorded series of an indicator."""

DIRECT_WINDOWS: Final = ("5m", "30m", "1h")
"""Taken from the counters themselves, every 30 seconds."""
CHAIN_WINDOWS: Final = ("2h", "6h", "1d", "3d")
"""Sums of increments of 5 minutes, every 5 minutes."""
WINDOW: Final = "_window"
"""The ending of series over the objective's own window."""
WINDOW_SECONDS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "5m": 300.0,
        "30m": 1_800.0,
        "1h": 3_600.0,
        "2h": 7_200.0,
        "6h": 21_600.0,
        "1d": 86_400.0,
        "3d": 259_200.0,
    }
)
"""The lengths of the windows that have a name."""

_NAME = re.compile(r"[a-z]+:[a-z][a-z0-9_]*:[a-z][a-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSeries:
    """One recorded series: what it means, and the labels it has."""

    name: str
    help: str
    labels: tuple[str, ...] = SLI_LABELS

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(f"recorded series {self.name!r}: expected level:metric:operation")


def _by_window(name: str, text: str, windows: tuple[str, ...]) -> Mapping[str, RecordedSeries]:
    """One series per window; `{window}` in *text* says which."""
    return MappingProxyType(
        {
            window: RecordedSeries(
                name=f"{name}{window}",
                help=text.format(
                    window="the objective's window" if window == WINDOW else f"the last {window}"
                ),
            )
            for window in windows
        }
    )


_ALL_WINDOWS = (*DIRECT_WINDOWS, *CHAIN_WINDOWS, WINDOW)

MAINTENANCE_ACTIVE: Final = RecordedSeries(
    name="flow:mm2_maintenance:active",
    help="1 while planned maintenance of the flow goes on; no sample else.",
    labels=FLOW_LABELS,
)
OBJECTIVE: Final = RecordedSeries(
    name="flow:mm2_slo_objective:ratio",
    help="The share of events that must be good; `severity` is the worst alert it allows.",
    labels=(*SLI_LABELS, "severity", "owner", "channel"),
)
OBJECTIVE_WINDOW: Final = RecordedSeries(
    name="flow:mm2_slo_window:seconds", help="The length of the objective's rolling window."
)
EVENTS_INCREASE: Final = _by_window(
    "flow:mm2_sli_events:increase",
    "Settled events of {window}, on average over the exporter's replicas, without maintenance.",
    DIRECT_WINDOWS,
)
BAD_INCREASE: Final = _by_window(
    "flow:mm2_sli_bad:increase", "Bad events of {window}, counted alike.", DIRECT_WINDOWS
)
EVENTS_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_events:step5m", help="Settled events of one step, without maintenance."
)
BAD_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_bad:step5m", help="Bad events of one step, without maintenance."
)
UNKNOWN_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_unknown:step5m",
    help="Events of one step that cannot be judged, without maintenance.",
)
EXCLUDED_STEP: Final = RecordedSeries(
    name="flow:mm2_sli_excluded:step5m",
    help="Settled events of one step that maintenance takes out; no sample else.",
)
DUE_STEP: Final = RecordedSeries(
    name="flow:mm2_slo_due:step5m",
    help="1 for each step in which the indicator should have been scraped: it has an objective, "
    "had one a step before, and there was no maintenance.",
)
EVENTS_SUM: Final = _by_window(
    "flow:mm2_sli_events:sum", "Settled events of {window}.", (*CHAIN_WINDOWS, WINDOW)
)
BAD_SUM: Final = _by_window(
    "flow:mm2_sli_bad:sum", "Bad events of {window}.", (*CHAIN_WINDOWS, WINDOW)
)
ERROR: Final = _by_window(
    "flow:mm2_slo_error:ratio",
    "Bad of all events of {window}; no sample without events.",
    _ALL_WINDOWS,
)
BURN: Final = _by_window(
    "flow:mm2_slo_burn:ratio",
    "Error ratio of {window} over the error budget: 1 spends exactly the budget.",
    _ALL_WINDOWS,
)
BUDGET_REMAINING: Final = RecordedSeries(
    name="flow:mm2_slo_budget_remaining:ratio",
    help="Share of the error budget that is left; below 0 when more was spent than promised.",
)
COVERAGE: Final = _by_window(
    "flow:mm2_slo_coverage:ratio",
    "Known of all events of {window}, times the share of steps that were scraped.",
    ("1h", WINDOW),
)

RECORDED_GROUPS: Final[Mapping[str, tuple[RecordedSeries, ...]]] = MappingProxyType(
    {
        "Promise": (OBJECTIVE, OBJECTIVE_WINDOW, MAINTENANCE_ACTIVE),
        "Short windows": (*EVENTS_INCREASE.values(), *BAD_INCREASE.values()),
        "Steps of five minutes": (EVENTS_STEP, BAD_STEP, UNKNOWN_STEP, EXCLUDED_STEP, DUE_STEP),
        "Long windows": (*EVENTS_SUM.values(), *BAD_SUM.values()),
        "Verdict": (*ERROR.values(), *BURN.values(), BUDGET_REMAINING, *COVERAGE.values()),
    }
)
"""By subject, in the order of the documentation."""
RECORDED: Final = tuple(series for group in RECORDED_GROUPS.values() for series in group)
"""Every recorded series."""
