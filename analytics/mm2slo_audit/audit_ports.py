"""Ports of a run and its result: scopes from Kafka, an engine, a clock, progress.

The store is `mm2slo_store.Store` itself: tests use a SQLite file.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mm2slo_audit.run_progress import RunProgress
from mm2slo_audit.scope.scope_assembly import RunScope
from mm2slo_core.audit.audit_conclusion import Conclusion
from mm2slo_core.audit.audit_scope import NotAudited, UnitScope, Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_rows import RunDirectory, RunHeader, StatedBound
from mm2slo_store.store import Store


class ScopeReader(Protocol):
    """Reads from both clusters what can be judged."""

    def list_topics(
        self, flows: Sequence[FlowConfig], topics: Sequence[str]
    ) -> Collection[tuple[Flow, str]]:
        """Flows with the target topics they feed, independent of a window.

        Raises UserError for an unknown topic, and if a cluster does not answer.
        """

    def read_scopes(
        self, flows: Sequence[FlowConfig], topics: Sequence[str], window: Window
    ) -> RunScope:
        """Current positions, end offsets and arrivals.

        Raises UserError for an unknown topic, and if a cluster does not answer.
        """


class LandedRecords(Protocol):
    """Landed records of a run, and the verdicts on them."""

    @property
    def scopes(self) -> Sequence[UnitScope]:
        """Scopes with the offsets actually read: retention may have moved log starts."""

    @property
    def failed(self) -> Sequence[NotAudited]:
        """Topics that could not be read."""

    @property
    def directories(self) -> Mapping[int, RunDirectory]:
        """Directories of landed records by index of the unit; units may share one."""

    @property
    def bytes_read(self) -> int:
        """Bytes of keys and values on both sides; in a sample estimated from its records."""

    def judge(self, scopes: Sequence[UnitScope], sample: Sample) -> Sequence[UnitOutcome]:
        """Judge *scopes* of these records. Raises AuditEngineError."""


class AuditEngine(Protocol):
    """Reads records; Spark, or the reference implementation in tests."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions by program name."""

    def land(
        self, scoped: RunScope, sample: Sample, run_id: str, on_read: Callable[[int], None]
    ) -> LandedRecords:
        """Read both sides and keep the sampled records.

        *on_read* gets the number of records read so far. Raises UserError if nothing can be read.
        """

    def discard(self, run_id: str, window: Window) -> None:
        """Delete the landed records of a run, if any."""

    def delete(self, paths: Collection[str]) -> None:
        """Delete run directories that are no longer referenced."""


class EngineSource(Protocol):
    """Starts the engine on demand, since Spark takes seconds."""

    def get(self, records: int) -> AuditEngine:
        """The engine, started if necessary for about that many *records*.

        Raises UserError if it cannot be started.
        """


@dataclass(frozen=True, slots=True)
class AuditPorts:
    """The ports of a run."""

    scope_reader: ScopeReader
    engine: EngineSource
    store: Store
    clock: Callable[[], int]
    """Epoch ms."""
    progress: RunProgress
    sleep: Callable[[float], None] = time.sleep
    """For a number of seconds."""


class AuditEngineError(UserError):
    """Records could not be read or judged; the text is one sentence without a stack trace."""


@dataclass(frozen=True, slots=True)
class UnitReport:
    """The result of one judged target topic."""

    outcome: UnitOutcome
    bounds: tuple[StatedBound, ...] = ()
    directories: tuple[RunDirectory, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a finished run. Times in epoch ms."""

    header: RunHeader
    sample: Sample
    finished_at: int
    conclusion: Conclusion
    units: tuple[UnitReport, ...] = ()
    not_audited: tuple[NotAudited, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on running connectors that differ from the configuration."""
    bytes_read: int = 0
    """Of keys and values on both sides; in a sample estimated from its records."""

    @property
    def exit_code(self) -> int:
        """0 clean, 1 faults found, 2 nothing could be audited."""
        return self.conclusion.exit_code
