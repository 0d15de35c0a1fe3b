"""Ports of a run and its result: scopes from Kafka, an engine, a clock, progress.

The store is `mm2slo_store.Store` itself: tests use a SQLite file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mm2slo_core.audit.audit_conclusion import Conclusion
from mm2slo_core.audit.audit_scope import NotAudited, UnitScope, Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_rows import RunDirectory, StatedBound

if TYPE_CHECKING:
    from mm2slo_audit.run_progress import RunProgress
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_store.store import Store


@dataclass(frozen=True, slots=True)
class RunScope:
    """Scopes that can be judged, and topics that cannot."""

    scopes: tuple[UnitScope, ...]
    not_audited: tuple[NotAudited, ...] = ()
    detail: Any = None
    """Opaque data for the engine."""
    restarting_completion: Collection[int] = ()
    """Indexes of scopes whose sources have no records before the window any more."""
    complete_up_to: int | None = None
    """Of an incremental run: up to when all topics were complete before it."""
    notes: tuple[str, ...] = ()
    """Sentences on running connectors that differ from the configuration."""


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

    def without(self, scoped: RunScope, indexes: Collection[int]) -> RunScope:
        """*scoped* without the scopes *indexes*; the others may get new indexes."""


@dataclass(frozen=True, slots=True)
class LandedRecords:
    """Landed records that can be judged."""

    scopes: tuple[UnitScope, ...]
    """With the offsets actually read: retention may have moved log starts."""
    data: Any = None
    """Opaque data of the engine."""
    failed: tuple[NotAudited, ...] = ()
    """Topics that could not be read."""
    directories: Mapping[int, tuple[RunDirectory, ...]] = field(default_factory=dict)
    """Directories of landed records by index of the unit."""
    bytes_read: int = 0
    """Of keys and values on both sides; in a sample estimated from its records."""


class AuditEngine(Protocol):
    """Reads and judges records; Spark, or the reference implementation in tests."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions by program name."""

    def land(
        self, scoped: RunScope, sample: Sample, run_id: str, on_read: Callable[[int], None]
    ) -> LandedRecords:
        """Read both sides and keep the sampled records.

        *on_read* gets the number of records read so far. Raises UserError if nothing can be read.
        """

    def judge(
        self, landed: LandedRecords, scopes: Sequence[UnitScope], sample: Sample
    ) -> Sequence[UnitOutcome]:
        """Judge *scopes* of the landed records. Raises AuditEngineError."""

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
