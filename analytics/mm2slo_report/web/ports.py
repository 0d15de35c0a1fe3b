"""What the service asks of the results store and of the exporters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mm2slo_core.audit.verdict import Verdict
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_report.recording.health import RecorderHealth
    from mm2slo_report.rendering.views import FlowView, GroupView
    from mm2slo_store.rows import Run, RunPlace, RunState, StoredEvidence, StoredUnit


class Records(Protocol):
    """What is stored of audits and planned maintenance; `mm2slo_store.Store` is one.

    Every method raises UserError when the database refuses.
    """

    def runs(
        self,
        *,
        flow: Flow | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> Sequence[Run]:
        """Runs of audits, the newest first; those behind the place *after*."""

    def runs_of(self, run_ids: Collection[str]) -> Sequence[Run]:
        """Those of *run_ids* that are there, newest first."""

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        """How many runs there are in each state."""

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        """The newest finished run of each of *flows* that has one, in their order."""

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
        """Anomalies of a run, in a fixed order, without the first *start*."""

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        """Of how many anomalies of each verdict each unit of a run has evidence."""

    def exclusions(self, *, flow: Flow | None = None) -> Sequence[Exclusion]:
        """Planned maintenance in order of its start, removed ones as well."""

    def add_exclusion(self, exclusion: Exclusion) -> None:
        """Keep planned maintenance."""

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Take it back, or end it."""


class Effects(Protocol):
    """What became of planned maintenance outside of reports, a sentence each."""

    @property
    def done(self) -> Sequence[str]:
        """What was done."""

    @property
    def problems(self) -> Sequence[str]:
        """What was not, and what to do."""


class Maintenance(Protocol):
    """Puts planned maintenance that is stored in force: burn rules, silences. Raises nothing."""

    def no_silence(self, new: Exclusion, now: int, *, asked: bool | None) -> str:
        """Why *new* cannot be silenced although *asked*; empty: it can, or need not.

        None asks for what the configuration says, where that can be.
        """

    def added(self, new: Exclusion, now: int, *, silence: bool | None) -> tuple[Exclusion, Effects]:
        """Put *new* in force; gives it with its silence."""

    def removed(self, removed: Exclusion, now: int) -> Effects:
        """Take *removed* out of force."""


class Recording(Protocol):
    """The recorder of the embedded history; `recording.recorder.Recorder` is one."""

    @property
    def health(self) -> RecorderHealth:
        """How it goes."""


class Surroundings(Protocol):
    """What exporters say right now; of replicas the worst. Raises SliSourceError."""

    def flows(self) -> Sequence[FlowView]:
        """How the flows are."""

    def groups(self) -> Sequence[GroupView]:
        """What consumer groups would find at a failover."""
