"""Applies exclusions of the report service as `mm2slo exclude` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_cli.exclude_effects import (
    ExclusionTargets,
    Steps,
    add_silence,
    apply_exclusions,
    expire_silence,
    silence_obstacle,
)
from mm2slo_cli.monitoring_api import Server

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_store import Store

_HINT: Final = "set alerting.links.prometheus"
RULES_NOT_WRITTEN: Final = (
    "burn rules are unchanged: run mm2slo exclude write where Prometheus reads its rule files, "
    "or set alerting.maintenance.rules_file"
)


class MaintenanceActions:
    """Implements `Maintenance` of the report service. Raises UserError for an invalid URL.

    Rules are written only if the configuration names a rule file: the service may run on another
    machine than Prometheus.
    """

    def __init__(self, loaded: Config, results: Store) -> None:
        alerting = loaded.alerting
        address = alerting.links.prometheus
        self._targets = ExclusionTargets.of(
            loaded,
            prometheus=None
            if address is None
            else Server.of("Prometheus", "alerting.links.prometheus", address),
        )
        self._writes_rules = "rules_file" in alerting.maintenance.model_fields_set
        self._silences = alerting.maintenance.silence
        self._results = results

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        """Return why *new* cannot be silenced, or "" if it can or is not *requested* to be."""
        return silence_obstacle(self._targets, new, now) if requested else ""

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, Steps]:
        """Create the silence if wanted, then write the rules."""
        steps = Steps()
        if self._silences if silence is None else silence:
            reason = silence_obstacle(self._targets, new, now)
            if reason:
                steps.problems.append(f"no silence was created: it {reason}")
            else:
                new = add_silence(self._results, self._targets, new, steps)
        self._write_rules(now, steps)
        return new, steps

    def apply_removed(self, removed: Exclusion, now: int) -> Steps:
        """Expire the silence, then write the rules."""
        steps = Steps()
        expire_silence(removed, self._targets, now, steps)
        self._write_rules(now, steps)
        return steps

    def _write_rules(self, now: int, steps: Steps) -> None:
        if self._writes_rules:
            apply_exclusions(self._results, self._targets, now, steps, hint=_HINT)
        else:
            steps.problems.append(RULES_NOT_WRITTEN)
