"""Interfaces of the report service to planned maintenance, the recorder and the exporters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_report.recording.recorder_health import RecorderHealth
    from mm2slo_report.rendering.page_views import FlowView, GroupView


class Effects(Protocol):
    """Effects of planned maintenance outside of reports, one sentence each."""

    @property
    def done(self) -> Sequence[str]:
        """What was done."""

    @property
    def problems(self) -> Sequence[str]:
        """What failed, and what to do."""


class Maintenance(Protocol):
    """Applies stored planned maintenance to burn rules and silences. Never raises."""

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        """Why *new* cannot be silenced although *requested*; empty if it can or need not.

        None requests the configured default, if possible.
        """

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, Effects]:
        """Apply *new*; returns it with its silence."""

    def apply_removed(self, removed: Exclusion, now: int) -> Effects:
        """Revert *removed*."""


class RecorderStatus(Protocol):
    """The recorder of the embedded history, such as `recording.recorder.Recorder`."""

    @property
    def health(self) -> RecorderHealth:
        """Current health."""


class FlowStatus(Protocol):
    """Current state from the exporters, the worst of replicas. Raises SliSourceError."""

    def flows(self) -> Sequence[FlowView]:
        """Current state of the flows."""

    def groups(self) -> Sequence[GroupView]:
        """Failover readiness of consumer groups."""
