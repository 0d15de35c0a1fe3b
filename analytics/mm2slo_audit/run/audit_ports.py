"""What a run needs of the world: scopes from Kafka, an engine, a clock.

The store is `mm2slo_store.Store` itself: a SQLite file is as good in a test as a fake.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mm2slo_audit.run.run_progress import Progress
    from mm2slo_core.audit.audit_scope import NotAudited, UnitScope, Window
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_core.config import FlowConfig
    from mm2slo_core.topology import Flow
    from mm2slo_store import RunDirectory, Store


@dataclass(frozen=True, slots=True)
class RunScope:
    """What can be judged, and what cannot."""

    scopes: tuple[UnitScope, ...]
    not_audited: tuple[NotAudited, ...] = ()
    detail: Any = None
    """What the engine needs besides to read it; the run does not look into it."""
    restarting_completion: Collection[int] = ()
    """Indexes of scopes before whose window nothing can ever be audited: it is gone."""


class ScopeReader(Protocol):
    """Asks both clusters what there is to judge."""

    def list_topics(
        self, flows: Sequence[FlowConfig], topics: Sequence[str]
    ) -> Collection[tuple[Flow, str]]:
        """What there is to judge, whatever the window: flows and target topics that they feed.

        Raises UserError for a topic that is not there, and for a side that does not answer.
        """

    def read_scopes(
        self, flows: Sequence[FlowConfig], topics: Sequence[str], window: Window
    ) -> RunScope:
        """Positions, ends and arrivals as of now.

        Raises UserError for a topic that is not there, and for a side that does not answer.
        """

    def without(self, scoped: RunScope, indexes: Collection[int]) -> RunScope:
        """The same without some of the scopes; the others may be numbered anew."""


@dataclass(frozen=True, slots=True)
class Landed:
    """Records that were read and can be judged."""

    scopes: tuple[UnitScope, ...]
    """With the bounds that they were read with: retention may have moved on."""
    data: Any = None
    """The engine's own."""
    failed: tuple[NotAudited, ...] = ()
    """What could not be read."""
    directories: Mapping[int, tuple[RunDirectory, ...]] = field(default_factory=dict)
    """By index: where the records of a unit are kept."""


class Engine(Protocol):
    """Reads and judges; Spark, or the reference in tests."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Program -> version."""

    def land(
        self, scoped: RunScope, sample: Sample, run_id: str, on_read: Callable[[int], None]
    ) -> Landed:
        """Read both sides and keep what is sampled.

        *on_read* gets the number of records read so far. Raises UserError when nothing can be
        read.
        """

    def judge(
        self, landed: Landed, scopes: Sequence[UnitScope], sample: Sample
    ) -> Sequence[UnitOutcome]:
        """Judge *scopes* of what has landed. Raises AuditEngineError."""

    def discard(self, run_id: str, window: Window) -> None:
        """Delete what a run has landed, if there is any of it."""

    def delete(self, paths: Collection[str]) -> None:
        """Delete run directories that nothing refers to any more."""


class EngineSource(Protocol):
    """An engine that is started when it is needed: Spark takes seconds."""

    def get(self, records: int) -> Engine:
        """The engine; one that is not running yet is started for about so many *records*.

        Raises UserError when it cannot be started.
        """


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a run needs from outside."""

    scope_reader: ScopeReader
    engine: EngineSource
    store: Store
    clock: Callable[[], int]
    """Epoch ms."""
    progress: Progress
