"""Interfaces of the report service to the results store and the exporters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mm2slo_core.audit.record_verdict import Verdict
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_report.recording.recorder_health import RecorderHealth
    from mm2slo_report.rendering.page_views import FlowView, GroupView
    from mm2slo_store.audit_rows import Run, RunPlace, RunState, StoredEvidence, StoredUnit


class Records(Protocol):
    """Stored audits and planned maintenance, such as `mm2slo_store.Store`.

    Every method raises UserError on database errors.
    """

    def runs(
        self,
        *,
        flow: Flow | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> Sequence[Run]:
        """Audit runs, newest first, that follow the position *after*."""

    def runs_by_id(self, run_ids: Collection[str]) -> Sequence[Run]:
        """The runs with these ids that exist, newest first."""

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        """Number of runs by state."""

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        """The newest finished run of each of *flows*, if any, in that order."""

    def units(self, *, run_id: str | None = None) -> Sequence[StoredUnit]:
        """The units of a run."""

    def evidence(
        self,
        *,
        run_id: str | None = None,
        verdicts: Collection[Verdict] = (),
        limit: int | None = None,
        start: int = 0,
    ) -> Sequence[StoredEvidence]:
        """Anomalies of a run in a fixed order, skipping the first *start*."""

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        """Number of anomalies with evidence, by unit and verdict."""

    def exclusions(self, *, flow: Flow | None = None) -> Sequence[Exclusion]:
        """Planned maintenance by start, including removed ones."""

    def add_exclusion(self, exclusion: Exclusion) -> None:
        """Store planned maintenance."""

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Remove planned maintenance, or end it if it is running."""


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
