"""What the service asks of the results store and of the exporters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mm2slo_core.audit.verdict import Verdict
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_report.recording.health import RecorderHealth
    from mm2slo_report.rendering.views import FlowView, GroupView
    from mm2slo_store.rows import Completion, Run, StoredEvidence, StoredUnit


class Records(Protocol):
    """What is stored of audits and planned maintenance; `mm2slo_store.Store` is one.

    Every method raises UserError when the database refuses.
    """

    def runs(self, *, flow: Flow | None = None, limit: int | None = None) -> Sequence[Run]:
        """Runs of audits, the newest first."""

    def units(self, *, run_id: str | None = None) -> Sequence[StoredUnit]:
        """The units of a run."""

    def evidence(
        self,
        *,
        run_id: str | None = None,
        verdicts: Collection[Verdict] = (),
        limit: int | None = None,
    ) -> Sequence[StoredEvidence]:
        """Anomalies of a run, in a fixed order."""

    def completion(self, flow: Flow, target_topic: str) -> Completion | None:
        """How far a topic is complete."""

    def exclusions(self, *, flow: Flow | None = None) -> Sequence[Exclusion]:
        """Planned maintenance in order of its begin, removed ones as well."""

    def add_exclusion(self, exclusion: Exclusion) -> None:
        """Keep planned maintenance."""

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Take it back, or end it."""


class Recording(Protocol):
    """The recorder of the embedded history; `recording.recorder.Recorder` is one."""

    @property
    def health(self) -> RecorderHealth:
        """How it goes."""


class Surroundings(Protocol):
    """What exporters say right now; of replicas the worst. Raises SourceProblem."""

    def flows(self) -> Sequence[FlowView]:
        """How the flows are."""

    def groups(self) -> Sequence[GroupView]:
        """What consumer groups would find at a failover."""
