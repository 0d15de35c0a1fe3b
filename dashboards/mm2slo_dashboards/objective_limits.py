"""The limits that panels compare with, from the objectives of the configuration.

A dashboard shows any flow, so where flows differ it uses the strictest limit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.config.published_indicators import default_objective_rules
from mm2slo_core.objectives.objective import DEFAULT_WINDOW
from mm2slo_core.objectives.slo_status import LOW_BUDGET, MIN_COVERAGE
from mm2slo_core.objectives.window_pairs import WINDOW_PAIRS
from mm2slo_core.topology import Flow
from mm2slo_dashboards.colours import LINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.config import Config
    from mm2slo_core.objectives.objective import ObjectiveRule
    from mm2slo_core.objectives.window_pairs import WindowPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times are in seconds, shares of 1.

    `latencies` are the thresholds of the latency SLI.
    `windows` are those of the objectives, the longest last; `flows` are the configured ones.
    """

    lag: float
    latencies: tuple[float, ...]
    redelivery: int
    checkpoint_lag: int
    windows: tuple[float, ...]
    flows: tuple[str, ...] = ()
    little_left: float = LOW_BUDGET
    coverage: float = MIN_COVERAGE

    def alert_burn_rate(self, pair: WindowPair) -> float:
        """The burn rate at which *pair* alerts; the lowest where windows differ."""
        return min(pair.factor(window) for window in self.windows)

    @property
    def flow_colours(self) -> Mapping[str, str]:
        """The colour of the line of each configured flow, the same on all dashboards."""
        return dict(zip(self.flows, itertools.cycle(LINES), strict=False))

    @property
    def page_burn_rate(self) -> float:
        """The burn rate over an hour that pages."""
        return self.alert_burn_rate(WINDOW_PAIRS[0])


def collect_limits(config: Config | None = None) -> Limits:
    """The limits of the configured flows; without a configuration, the defaults."""
    if config is None:
        flows: Sequence[FlowConfig] = (FlowConfig(flow=Flow("source", "target")),)
        rules: Sequence[ObjectiveRule] = default_objective_rules()
    else:
        flows, rules = config.flows, config.objective_rules
    return Limits(
        lag=min(each.threshold for flow in flows for each in flow.freshness),
        latencies=min(flow.canary.latency_tiers for flow in flows),
        redelivery=min(flow.readiness.max_redelivery_records for flow in flows),
        checkpoint_lag=min(flow.readiness.max_checkpoint_lag_records for flow in flows),
        flows=() if config is None else tuple(str(each.flow) for each in flows),
        windows=tuple(sorted({rule.window for rule in rules})) or (DEFAULT_WINDOW,),
    )
