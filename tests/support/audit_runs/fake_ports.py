"""Fakes for the ports of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from generated_units import Drawing, Generated
from reference_audit import judge

from mm2slo_audit.audit_ports import AuditEngineError, AuditPorts
from mm2slo_audit.run_progress import RunStage
from mm2slo_audit.scope.scope_assembly import Isolations, RunScope
from mm2slo_core.audit.audit_scope import (
    NotAudited,
    NotAuditedReason,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import RunDirectory
from mm2slo_store.store import Store


@dataclass
class Clock:
    """A clock that a test sets."""

    now: int

    def __call__(self) -> int:
        return self.now


@dataclass
class GeneratedScopes:
    """Reads scopes of generated units, or raises `error`."""

    units: tuple[Generated, ...]
    error: BaseException | None = None
    windows: list[Window] = field(default_factory=list)
    unscoped: tuple[NotAudited, ...] = ()

    def list_topics(
        self, flows: Sequence[FlowConfig], topics: Sequence[str]
    ) -> set[tuple[Flow, str]]:
        absent = {NotAuditedReason.TARGET_MISSING, NotAuditedReason.SOURCE_MISSING}
        scopes = [unit.scope for unit in self.units]
        existing = {(each.flow, scope.target_topic) for scope in scopes for each in scope.flows}
        existing |= {
            (flow, each.target_topic)
            for each in self.unscoped
            if each.reason not in absent
            for flow in each.flows
        }
        wanted = {flow.flow for flow in flows}
        return {
            (flow, topic)
            for flow, topic in existing
            if flow in wanted and (not topics or topic in topics)
        }

    def read_scopes(
        self, flows: Sequence[FlowConfig], topics: Sequence[str], window: Window
    ) -> RunScope:
        self.windows.append(window)
        if self.error is not None:
            raise self.error
        wanted = {flow.flow for flow in flows}
        found = [
            unit.scope
            for unit in self.units
            if unit.scope.flows[0].flow in wanted
            and (
                not topics
                or {unit.scope.flows[0].source_topic, unit.scope.target_topic} & set(topics)
            )
        ]
        return RunScope(
            scopes=tuple(
                replace(scope, index=number, window=window) for number, scope in enumerate(found)
            ),
            not_audited=self.unscoped,
            isolations=(Isolations((), "read_uncommitted"),) * len(found),
            copies=({},) * len(found),
        )


@dataclass
class ReferenceEngine:
    """Lands only a manifest, and judges by the plain-Python reference."""

    units: tuple[Generated, ...]
    folder: Path
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Target topics that cannot be read, with reasons."""
    broken: frozenset[str] = frozenset()
    """Target topics that cannot be judged."""
    on_land: Callable[[], None] = lambda: None
    requested_records: list[int] = field(default_factory=list)
    """Expected number of records of each run."""
    problem: BaseException | None = None

    def get(self, records: int) -> ReferenceEngine:
        self.requested_records.append(records)
        if self.problem is not None:
            raise self.problem
        return self

    @property
    def versions(self) -> Mapping[str, str]:
        return {"mm2slo": "0.1.0", "spark": "none"}

    def land(
        self, scoped: RunScope, sample: Sample, run_id: str, on_read: Callable[[int], None]
    ) -> ReferenceLanding:
        folder = self.folder / run_id
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"rate": sample.rate}))
        self.on_land()
        read, failed = [], []
        for scope in scoped.scopes:
            reason = self.unreadable.get(scope.target_topic)
            if reason is None:
                read.append(scope)
            else:
                flows = tuple(each.flow for each in scope.flows)
                failed.append(
                    NotAudited(scope.target_topic, NotAuditedReason.FAILED, reason, flows)
                )
        records = sum(len(self.unit_of(scope).records) for scope in read)
        on_read(records)
        directory = RunDirectory(str(folder), rows=records)
        return ReferenceLanding(
            self, tuple(read), tuple(failed), {scope.index: directory for scope in read}
        )

    def unit_of(self, scope: UnitScope) -> Generated:
        (found,) = (unit for unit in self.units if unit.scope.target_topic == scope.target_topic)
        return found

    def discard(self, run_id: str, window: Window) -> None:
        assert window.start < window.end
        shutil.rmtree(self.folder / run_id, ignore_errors=True)

    def delete(self, paths: Collection[str]) -> None:
        for path in paths:
            shutil.rmtree(path)


@dataclass
class ReferenceLanding:
    """Records of the engine's units, judged by the plain-Python reference."""

    engine: ReferenceEngine
    scopes: tuple[UnitScope, ...]
    failed: tuple[NotAudited, ...]
    directories: Mapping[int, RunDirectory]
    bytes_read: int = 12_345_678

    def judge(self, scopes: Sequence[UnitScope], sample: Sample) -> list[UnitOutcome]:
        assert {each.index for each in scopes} <= {each.index for each in self.scopes}
        if any(scope.target_topic in self.engine.broken for scope in scopes):
            raise AuditEngineError("the records of the topic cannot be judged: the disk is full")
        return [
            judge(
                [
                    replace(each, topic=scope.index)
                    for each in Drawing(self.engine.unit_of(scope).records).draw(sample)
                ],
                [replace(each, topic=scope.index) for each in self.engine.unit_of(scope).polls],
                scope,
                sample,
            )
            for scope in scopes
        ]


@dataclass
class RecordedProgress:
    """Records all progress."""

    stages: list[RunStage] = field(default_factory=list)
    expected: int = 0
    records: int = 0
    messages: list[str] = field(default_factory=list)

    def stage(self, stage: RunStage, detail: str = "") -> None:
        self.stages.append(stage)
        self.messages += [detail] if detail else []

    def expect(self, records: int) -> None:
        self.expected = records

    def read(self, records: int) -> None:
        self.records = records

    def warn(self, text: str) -> None:
        self.messages.append(text)


def ports_for(
    store: Store, folder: Path, *units: Generated, clock: Clock | None = None
) -> AuditPorts:
    """Fake ports for *units*; the clock is at the end of the first unit's window."""
    return AuditPorts(
        scope_reader=GeneratedScopes(units),
        engine=ReferenceEngine(units, folder),
        store=store,
        clock=clock or Clock(units[0].scope.window.end),
        progress=RecordedProgress(),
    )


def fakes_of(ports: AuditPorts) -> tuple[GeneratedScopes, ReferenceEngine, RecordedProgress]:
    """The fakes of *ports* by their types."""
    assert isinstance(ports.scope_reader, GeneratedScopes)
    assert isinstance(ports.engine, ReferenceEngine)
    assert isinstance(ports.progress, RecordedProgress)
    return ports.scope_reader, ports.engine, ports.progress


CONFIG = load_config(
    """
    clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
    flows: [{flow: us->eu}]
    """
)
"""Two clusters that are never connected to, and the flow of generated units."""
