"""Checks whether Prometheus has loaded the generated rules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.config import Config
    from mm2slo_report.sources.sli_source import SliSource


def missing_rules(loaded: Config, source: SliSource) -> Callable[[], Sequence[str]] | None:
    """Return a function that lists missing rule groups; None if *source* is not Prometheus."""
    from mm2slo_report.sources.prometheus import PrometheusSource

    if not isinstance(source, PrometheusSource):
        return None
    names = cache(lambda: expected_groups(loaded))
    return lambda: source.rules_problems(names())


def expected_groups(loaded: Config) -> tuple[str, ...]:
    """Return the names of the groups that `mm2slo alerts generate` writes for *loaded*."""
    # Only readiness needs these; importing them would slow down the start.
    from mm2slo_alerts import recording
    from mm2slo_alerts.output_files import alert_groups, links
    from mm2slo_alerts.rule_model import PRODUCTION

    recorded = recording.groups(loaded.objective_rules, PRODUCTION)
    alerts = alert_groups(links(loaded.alerting.links))
    return tuple(dict.fromkeys(each.name for each in (*recorded, *alerts)))
