"""Planned maintenance that affects reports only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mm2slo_core.objectives.exclusion import Exclusion

RULES_NOT_WRITTEN: Final = (
    "burn rules are unchanged: run mm2slo exclude write where Prometheus reads its rule files, "
    "or set alerting.maintenance.rules_file"
)
_NO_ALERTMANAGER: Final = "needs Alertmanager's URL: set alerting.links.alertmanager"


class MaintenanceEffects(NamedTuple):
    """`service_ports.Effects` as a tuple."""

    done: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class ReportOnlyMaintenance:
    """A `service_ports.Maintenance` that reports what it does not do."""

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        return _NO_ALERTMANAGER if requested else ""

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, MaintenanceEffects]:
        return new, MaintenanceEffects(problems=(RULES_NOT_WRITTEN,))

    def apply_removed(self, removed: Exclusion, now: int) -> MaintenanceEffects:
        return MaintenanceEffects(problems=(RULES_NOT_WRITTEN,))
