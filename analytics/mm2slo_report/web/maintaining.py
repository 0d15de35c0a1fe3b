"""Planned maintenance where nothing but reports can be told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mm2slo_core.objectives.exclusion import Exclusion

RULES_NOT_WRITTEN: Final = (
    "burn rules are as before: run mm2slo exclude write where Prometheus reads its rule files, "
    "or set alerting.maintenance.rules_file"
)
_NO_ALERTMANAGER: Final = "needs Alertmanager's address: set alerting.links.alertmanager"


class Told(NamedTuple):
    """See `ports.Effects`."""

    done: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class ReportsAlone:
    """A `ports.Maintenance` that says what is not done."""

    def no_silence(self, new: Exclusion, now: int, *, asked: bool | None) -> str:
        """There is none."""
        return _NO_ALERTMANAGER if asked else ""

    def added(self, new: Exclusion, now: int, *, silence: bool | None) -> tuple[Exclusion, Told]:
        """Nothing but to say so."""
        return new, Told(problems=(RULES_NOT_WRITTEN,))

    def removed(self, removed: Exclusion, now: int) -> Told:
        """As for one that was added."""
        return Told(problems=(RULES_NOT_WRITTEN,))
