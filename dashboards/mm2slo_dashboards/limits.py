"""The numbers that panels compare with, from the objectives of the configuration.

A board shows any flow, so where flows differ the strictest number holds: what is within it is
within each flow's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.config.flow import FlowConfig
from mm2slo_core.config.published import default_objective_rules
from mm2slo_core.objectives.objective import DEFAULT_WINDOW
from mm2slo_core.objectives.pairs import BURN_PAIRS
from mm2slo_core.objectives.status import LEAST_COVERAGE, LITTLE_LEFT
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.config import Config
    from mm2slo_core.objectives.objective import ObjectiveRule
    from mm2slo_core.objectives.pairs import BurnPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times are in seconds, shares of 1.

    `fresh` is the lag that is still good, `latencies` the thresholds of the latency indicator,
    `deadline` by when a canary must arrive, `checkpoint` how old a checkpoint may get (two
    intervals: one may be on its way). `windows` are those of the objectives, the longest last.
    """

    fresh: float
    latencies: tuple[float, ...]
    deadline: float
    checkpoint: float
    redelivery: int
    checkpoint_lag: int
    windows: tuple[float, ...]
    little_left: float = LITTLE_LEFT
    coverage: float = LEAST_COVERAGE

    def factor(self, pair: BurnPair) -> float:
        """The burn rate at which *pair* alerts; the lowest one where windows differ."""
        return min(pair.factor(window) for window in self.windows)

    @property
    def hot(self) -> float:
        """The burn rate of an hour that pages."""
        return self.factor(BURN_PAIRS[0])


def limits(config: Config | None = None) -> Limits:
    """Those of the configured flows; without a configuration, those of any flow by default."""
    if config is None:
        flows: Sequence[FlowConfig] = (FlowConfig(flow=Flow("source", "target")),)
        rules: Sequence[ObjectiveRule] = default_objective_rules()
    else:
        flows, rules = config.flows, config.objective_rules
    return Limits(
        fresh=min(each.threshold for flow in flows for each in flow.freshness),
        latencies=min(flow.canary.latency_tiers for flow in flows),
        deadline=min(flow.canary.deadline for flow in flows),
        checkpoint=min(2 * flow.checkpoint_interval for flow in flows),
        redelivery=min(flow.readiness.max_redelivery_records for flow in flows),
        checkpoint_lag=min(flow.readiness.max_checkpoint_lag_records for flow in flows),
        windows=tuple(sorted({rule.window for rule in rules})) or (DEFAULT_WINDOW,),
    )
