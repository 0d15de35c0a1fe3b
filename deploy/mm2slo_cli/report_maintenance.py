"""Planned maintenance over HTTP, with the effects of `mm2slo exclude`."""

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
from mm2slo_cli.web_calls import Server
from mm2slo_report.web.report_only_maintenance import RULES_NOT_WRITTEN

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_store import Store

_HINT: Final = "set alerting.links.prometheus"


class InForce:
    """A `Maintenance` of the report service, by *loaded*. Raises UserError for no address.

    A rule file is written only where the configuration names one: the service may run elsewhere
    than Prometheus, and no Prometheus would read a file in its own folder.
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
        self._writes = "rules_file" in alerting.maintenance.model_fields_set
        self._silences = alerting.maintenance.silence
        self._results = results

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        """Why *new* cannot be silenced although *requested*."""
        return silence_obstacle(self._targets, new, now) if requested else ""

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, Steps]:
        """Silence, then write."""
        steps = Steps()
        if self._silences if silence is None else silence:
            reason = silence_obstacle(self._targets, new, now)
            if reason:
                steps.problems.append(f"no silence was created: it {reason}")
            else:
                new = add_silence(self._results, self._targets, new, steps)
        self._write(now, steps)
        return new, steps

    def apply_removed(self, removed: Exclusion, now: int) -> Steps:
        """End the silence, then write."""
        steps = Steps()
        expire_silence(removed, self._targets, now, steps)
        self._write(now, steps)
        return steps

    def _write(self, now: int, steps: Steps) -> None:
        if self._writes:
            apply_exclusions(self._results, self._targets, now, steps, hint=_HINT)
        else:
            steps.problems.append(RULES_NOT_WRITTEN)
