"""One audit run: scope, lease, land, judge, conclude, publish."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mm2slo_audit.run.audit_options import hash_options, select_flows
from mm2slo_audit.run.earlier_audits import with_earlier
from mm2slo_audit.run.engine_error import AuditEngineError
from mm2slo_audit.run.run_progress import Stage
from mm2slo_audit.run.run_report import RunReport, UnitReport
from mm2slo_audit.run.stated_bounds import compute_stated_bounds
from mm2slo_audit.run.time_span import format_utc
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason, UnitScope
from mm2slo_core.audit.conclusion import conclude
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.user_errors import UserError
from mm2slo_store import (
    AuditRun,
    JudgedUnit,
    LeaseHeldError,
    RunHeader,
    RunState,
    UnitKey,
    UnjudgedUnit,
    new_run_id,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mm2slo_audit.run.audit_options import AuditOptions
    from mm2slo_audit.run.audit_ports import Engine, Landed, Ports, RunScope
    from mm2slo_core.audit.audit_scope import Window
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_core.config import Config, FlowConfig
    from mm2slo_store import Store

_MAX_FAILED_RUNS = 20
"""Newest failed runs whose directories are deleted."""


def audit(config: Config, options: AuditOptions, ports: Ports) -> RunReport:
    """Audit once and store the result.

    Raises UserError for problems that the user can fix; the store then only records that the run
    failed.
    """
    flows = select_flows(config, options)
    started_at = ports.clock()
    ports.progress.stage(Stage.SCOPING)
    resumed = _resume(flows, options, ports)
    window = options.span.window(started_at, resumed)
    scoped = ports.scope_reader.read_scopes(flows, options.topics, window)
    scoped = replace(scoped, complete_up_to=resumed)
    if not options.span.incremental:
        _require_records(scoped, window)
    run_id = new_run_id(started_at)
    header = RunHeader(
        id=run_id,
        flows=tuple(flow.flow for flow in flows),
        window=window,
        started_at=started_at,
        sample_rate=1.0 if options.sample.census else options.sample.rate,
        salt=options.sample.salt,
        config_hash=hash_options(flows, options),
    )
    with ExitStack() as leases:
        scoped = _lease(scoped, run_id, leases, ports, wait=options.wait)
        if not scoped.scopes:
            report = _report(header, (), scoped, options, ports)
            _publish(report, header, (), ports)
            return report
        ports.progress.stage(Stage.STARTING)
        engine = ports.engine.get(_offsets(scoped.scopes))
        header = replace(header, versions=engine.versions)
        return _run_announced(header, scoped, engine, options, ports)


def _run_announced(
    header: RunHeader, scoped: RunScope, engine: Engine, options: AuditOptions, ports: Ports
) -> RunReport:
    """Read, judge and publish; a run that fails is recorded as failed, without records."""
    sample = options.sample
    ports.store.announce(header)
    # Announcing marks dead runs as failed.
    for dead in ports.store.runs(state=RunState.FAILED, limit=_MAX_FAILED_RUNS):
        engine.discard(dead.header.id, dead.header.window)
    try:
        ports.progress.stage(Stage.READING, _format_topic_count(scoped.scopes))
        ports.progress.expect(_offsets(scoped.scopes))
        landed = engine.land(scoped, sample, header.id, ports.progress.read)
        ports.progress.stage(Stage.JUDGING)
        units, failed = _judge(landed, engine, sample, ports.store)
        scoped = replace(scoped, not_audited=(*scoped.not_audited, *landed.failed, *failed))
        report = _report(header, units, scoped, options, ports, bytes_read=landed.bytes_read)
        superseded = _publish(report, header, scoped.restarting_completion, ports)
    except BaseException as error:
        # A signal may arrive just after the result was stored.
        if ports.store.run(header.id).state is not RunState.FINISHED:
            ports.store.fail(header, str(error) or f"ended by {type(error).__name__}")
            # If Spark is gone, the next run deletes the records.
            with suppress(AuditEngineError):
                engine.discard(header.id, header.window)
        raise
    engine.delete(superseded)
    return report


def _require_records(scoped: RunScope, window: Window) -> None:
    """Raise UserError if the source has removed the whole requested window.

    An incremental run reports it in its verdict, and the next one continues after the window.
    """
    gone = [each for each in scoped.not_audited if each.reason is NotAuditedReason.EXPIRED]
    if gone and not scoped.scopes and len(gone) == len(scoped.not_audited):
        raise UserError(
            f"no records left in the window from {format_utc(window.start)} to"
            f" {format_utc(window.end)}: {gone[0].detail}; choose a later window"
        )


def _resume(flows: Sequence[FlowConfig], options: AuditOptions, ports: Ports) -> int | None:
    """Start of an incremental run: the earliest time that a topic is complete up to.

    Deleted topics and topics no longer replicated are ignored, since they are never complete.
    """
    if not options.span.incremental:
        return None
    topics = ports.scope_reader.list_topics(flows, options.topics)
    found = [ports.store.completion(flow, topic) for flow, topic in sorted(topics)]
    return min((each.up_to for each in found if each is not None), default=None)


def _lease(
    scoped: RunScope, run_id: str, leases: ExitStack, ports: Ports, *, wait: bool
) -> RunScope:
    """Lease the scopes; those that another run holds are reported as leased.

    With *wait* they are tried again when the lease expires, unless its holder renews it.
    """
    taken: dict[int, NotAudited] = {}
    for scope in scoped.scopes:
        key = UnitKey.of(scope)
        lease = partial(ports.store.lease, key.target_cluster, key.target_topic, holder=run_id)
        try:
            try:
                leases.enter_context(lease())
            except LeaseHeldError as held:
                if not wait:
                    raise
                seconds = held.expires_in_ms / 1000
                ports.progress.warn(f"waiting {seconds:.0f} s for a lease: {held}")
                ports.sleep(seconds)
                leases.enter_context(lease())
        except LeaseHeldError as held:
            taken[scope.index] = _not_audited(scope, NotAuditedReason.LEASED, str(held))
    if not taken:
        return scoped
    kept = ports.scope_reader.without(scoped, taken.keys())
    return replace(kept, not_audited=(*kept.not_audited, *taken.values()))


def _judge(
    landed: Landed, engine: Engine, sample: Sample, store: Store
) -> tuple[tuple[UnitReport, ...], tuple[NotAudited, ...]]:
    outcomes: list[UnitOutcome] = []
    failed: list[NotAudited] = []
    scopes = [
        with_earlier(each, store.open_scopes(UnitKey.of(each), each.window))
        for each in landed.scopes
    ]
    try:
        outcomes += engine.judge(landed, scopes, sample)
    except AuditEngineError:
        if len(scopes) == 1:
            raise
        # Find the failing topic, so that the others are judged.
        for scope in scopes:
            try:
                outcomes += engine.judge(landed, [scope], sample)
            except AuditEngineError as problem:
                failed.append(_not_audited(scope, NotAuditedReason.FAILED, str(problem)))
        if not outcomes:
            raise
    return tuple(_unit(outcome, landed, sample) for outcome in outcomes), tuple(failed)


def _unit(outcome: UnitOutcome, landed: Landed, sample: Sample) -> UnitReport:
    return UnitReport(
        outcome,
        compute_stated_bounds(outcome, sample),
        landed.directories.get(outcome.scope.index, ()),
    )


def _report(
    header: RunHeader,
    units: Sequence[UnitReport],
    scoped: RunScope,
    options: AuditOptions,
    ports: Ports,
    *,
    bytes_read: int = 0,
) -> RunReport:
    return RunReport(
        run_id=header.id,
        flows=header.flows,
        window=header.window,
        sample=options.sample,
        started_at=header.started_at,
        finished_at=ports.clock(),
        conclusion=conclude(
            [unit.outcome for unit in units],
            scoped.not_audited,
            sample=options.sample,
            duplicates=options.duplicates,
            known=scoped.complete_up_to,
        ),
        units=tuple(units),
        not_audited=scoped.not_audited,
        config_hash=header.config_hash,
        versions=header.versions,
        notes=scoped.notes,
        bytes_read=bytes_read,
    )


def _publish(
    report: RunReport, header: RunHeader, restarting_completion: Collection[int], ports: Ports
) -> tuple[str, ...]:
    """Store the run; returns directories that are no longer referenced."""
    ports.progress.stage(Stage.PUBLISHING)
    run = AuditRun(
        header=header,
        finished_at=report.finished_at,
        exit_code=report.exit_code,
        verdict_line=report.conclusion.line,
        complete_up_to=report.conclusion.complete_up_to,
        bytes_read=report.bytes_read,
        judged=tuple(
            JudgedUnit(
                unit.outcome,
                unit.bounds,
                unit.directories,
                restarts_completion=unit.outcome.scope.index in restarting_completion,
            )
            for unit in report.units
        ),
        not_audited=tuple(
            UnjudgedUnit(each, each.flows, header.window) for each in report.not_audited
        ),
    )
    return ports.store.publish(run).superseded


def _not_audited(scope: UnitScope, reason: NotAuditedReason, detail: str) -> NotAudited:
    return NotAudited(scope.target_topic, reason, detail, tuple(each.flow for each in scope.flows))


def _offsets(scopes: Iterable[UnitScope]) -> int:
    return sum(scope.planned for scope in scopes)


def _format_topic_count(scopes: Sequence[UnitScope]) -> str:
    return plural(len(scopes), "topic")
