"""Planned maintenance over HTTP, put in force as `mm2slo exclude` does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_cli.exclude_force import (
    Places,
    Steps,
    add_silence,
    end_its_silence,
    no_silence,
    put_in_force,
)
from mm2slo_cli.web_calls import Server
from mm2slo_report.web.maintaining import RULES_NOT_WRITTEN

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_store import Store

_HINT: Final = "set alerting.links.prometheus"


class InForce:
    """A `Maintenance` of the report service, by *loaded*. Raises UserError for no address.

    A rule file is written only where the configuration names one: the service may run elsewhere
    than Prometheus, and a file in its own folder would be read by nobody.
    """

    def __init__(self, loaded: Config, results: Store) -> None:
        alerting = loaded.alerting
        address = alerting.links.prometheus
        self._places = Places.of(
            loaded,
            prometheus=None
            if address is None
            else Server.of("Prometheus", "alerting.links.prometheus", address),
        )
        self._writes = "rules_file" in alerting.maintenance.model_fields_set
        self._silences = alerting.maintenance.silence
        self._results = results

    def no_silence(self, new: Exclusion, now: int, *, asked: bool | None) -> str:
        """Why *new* cannot be silenced although *asked*."""
        return no_silence(self._places, new, now) if asked else ""

    def added(self, new: Exclusion, now: int, *, silence: bool | None) -> tuple[Exclusion, Steps]:
        """Silence, then write."""
        steps = Steps()
        if self._silences if silence is None else silence:
            reason = no_silence(self._places, new, now)
            if reason:
                steps.problems.append(f"no silence was made: it {reason}")
            else:
                new = add_silence(self._results, self._places, new, steps)
        self._write(now, steps)
        return new, steps

    def removed(self, removed: Exclusion, now: int) -> Steps:
        """End the silence, then write."""
        steps = Steps()
        end_its_silence(removed, self._places, now, steps)
        self._write(now, steps)
        return steps

    def _write(self, now: int, steps: Steps) -> None:
        if self._writes:
            put_in_force(self._results, self._places, now, steps, hint=_HINT)
        else:
            steps.problems.append(RULES_NOT_WRITTEN)
