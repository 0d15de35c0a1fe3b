"""The result of a run, as frozen values for reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.audit.audit_scope import NotAudited, Window
    from mm2slo_core.audit.conclusion import Conclusion
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_core.topology import Flow
    from mm2slo_store import RunDirectory, StatedBound


@dataclass(frozen=True, slots=True)
class UnitReport:
    """The result of one judged target topic."""

    outcome: UnitOutcome
    bounds: tuple[StatedBound, ...] = ()
    directories: tuple[RunDirectory, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a finished run. Times in epoch ms."""

    run_id: str
    flows: tuple[Flow, ...]
    window: Window
    sample: Sample
    started_at: int
    finished_at: int
    conclusion: Conclusion
    units: tuple[UnitReport, ...] = ()
    not_audited: tuple[NotAudited, ...] = ()
    config_hash: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """As in `RunScope`."""
    bytes_read: int = 0
    """As in `Landed`."""

    @property
    def exit_code(self) -> int:
        """0 clean, 1 faults found, 2 nothing could be audited."""
        return self.conclusion.exit_code
