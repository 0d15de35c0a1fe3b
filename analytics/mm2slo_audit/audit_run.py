"""One audit run, from scope to published result, and its repetition with --follow.

A run reads its scope, takes a lease, lands and judges records by the engine, concludes, states
confidence bounds of the rates, and publishes all of it to the store.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from mm2slo_audit.audit_options import (
    AuditOptions,
    TimeSpan,
    hash_options,
    select_flows,
)
from mm2slo_audit.audit_ports import (
    AuditEngine,
    AuditEngineError,
    AuditPorts,
    LandedRecords,
    RunReport,
    UnitReport,
)
from mm2slo_audit.run_progress import RunStage
from mm2slo_audit.scope.scope_assembly import RunScope
from mm2slo_core.audit.audit_conclusion import (
    ABSENT,
    KeyRate,
    Rate,
    conclude,
    disorder_rate,
    moved_rate,
    rate_statement,
    record_rates,
)
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason, UnitScope, Window
from mm2slo_core.audit.confidence_bounds import Interval, plural, statement
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_rows import (
    AuditRun,
    JudgedUnit,
    RunHeader,
    RunState,
    StatedBound,
    UnitKey,
    UnjudgedUnit,
    new_run_id,
)
from mm2slo_store.store import Store
from mm2slo_store.store_leases import LeaseHeldError


def follow(
    config: Config,
    options: AuditOptions,
    ports: AuditPorts,
    *,
    every: float,
    on_report: Callable[[RunReport], None],
    wait: Callable[[float], None],
) -> None:
    """Audit every *every* seconds, each run from where the last one was complete; never returns.

    The first run uses *options*, and its errors are raised. Errors of later runs, as of a cluster
    that is unreachable for a while, are shown, and the next run tries again. *on_report* gets each
    report, *wait* sleeps.
    """
    on_report(audit(config, options, ports))
    options = replace(options, span=TimeSpan())
    while True:
        wait(every)
        try:
            on_report(audit(config, options, ports))
        except UserError as error:
            ports.progress.warn(f"run failed, next run in {every:g} s: {error}")


_MAX_FAILED_RUNS = 20
"""Newest failed runs whose directories are deleted."""


def audit(config: Config, options: AuditOptions, ports: AuditPorts) -> RunReport:
    """Audit once and store the result.

    Raises UserError for problems that the user can fix; the store then only records that the run
    failed.
    """
    flows = select_flows(config, options)
    started_at = ports.clock()
    ports.progress.stage(RunStage.SCOPING)
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
        ports.progress.stage(RunStage.STARTING)
        engine = ports.engine.get(scoped.planned)
        header = replace(header, versions=engine.versions)
        return _run_announced(header, scoped, engine, options, ports)


def _run_announced(
    header: RunHeader,
    scoped: RunScope,
    engine: AuditEngine,
    options: AuditOptions,
    ports: AuditPorts,
) -> RunReport:
    """Read, judge and publish; a run that fails is recorded as failed, without records."""
    sample = options.sample
    ports.store.announce(header)
    # Announcing marks dead runs as failed.
    for dead in ports.store.runs(state=RunState.FAILED, limit=_MAX_FAILED_RUNS):
        engine.discard(dead.header.id, dead.header.window)
    try:
        ports.progress.stage(RunStage.READING, plural(len(scoped.scopes), "topic"))
        ports.progress.expect(scoped.planned)
        landed = engine.land(scoped, sample, header.id, ports.progress.read)
        ports.progress.stage(RunStage.JUDGING)
        units, failed = _judge(landed, sample, ports.store)
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
            f"no records left in the window from {utc_text(window.start)} to"
            f" {utc_text(window.end)}: {gone[0].detail}; choose a later window"
        )


def _resume(flows: Sequence[FlowConfig], options: AuditOptions, ports: AuditPorts) -> int | None:
    """Start of an incremental run: the earliest time that a topic is complete up to.

    Deleted topics and topics no longer replicated are ignored, since they are never complete.
    """
    if not options.span.incremental:
        return None
    topics = ports.scope_reader.list_topics(flows, options.topics)
    found = [ports.store.completion(flow, topic) for flow, topic in sorted(topics)]
    return min((each.up_to for each in found if each is not None), default=None)


def _lease(
    scoped: RunScope, run_id: str, leases: ExitStack, ports: AuditPorts, *, wait: bool
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
    kept = scoped.without(taken)
    return replace(kept, not_audited=(*kept.not_audited, *taken.values()))


def _judge(
    landed: LandedRecords, sample: Sample, store: Store
) -> tuple[tuple[UnitReport, ...], tuple[NotAudited, ...]]:
    outcomes: list[UnitOutcome] = []
    failed: list[NotAudited] = []
    scopes = [
        add_earlier_audits(each, store.open_scopes(UnitKey.of(each), each.window))
        for each in landed.scopes
    ]
    try:
        outcomes += landed.judge(scopes, sample)
    except AuditEngineError:
        if len(scopes) == 1:
            raise
        # Find the failing topic, so that the others are judged.
        for scope in scopes:
            try:
                outcomes += landed.judge([scope], sample)
            except AuditEngineError as problem:
                failed.append(_not_audited(scope, NotAuditedReason.FAILED, str(problem)))
        if not outcomes:
            raise
    units = tuple(
        UnitReport(
            outcome,
            compute_stated_bounds(outcome, sample),
            (landed.directories[outcome.scope.index],),
        )
        for outcome in outcomes
    )
    return units, tuple(failed)


def _report(
    header: RunHeader,
    units: Sequence[UnitReport],
    scoped: RunScope,
    options: AuditOptions,
    ports: AuditPorts,
    *,
    bytes_read: int = 0,
) -> RunReport:
    return RunReport(
        header=header,
        sample=options.sample,
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
        notes=scoped.notes,
        bytes_read=bytes_read,
    )


def _publish(
    report: RunReport, header: RunHeader, restarting_completion: Collection[int], ports: AuditPorts
) -> tuple[str, ...]:
    """Store the run; returns directories that are no longer referenced."""
    ports.progress.stage(RunStage.PUBLISHING)
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


def add_earlier_audits(scope: UnitScope, stored: Iterable[UnitScope]) -> UnitScope:
    """*scope* with *stored*, and with what those have replaced.

    Of two audits between which nothing arrived, the later one decides about all records of both,
    if its window contains the other's.
    """
    known = [replace(each, earlier=()) for audit in stored for each in (audit, *audit.earlier)]
    kept: list[UnitScope] = []
    for each in sorted(known, key=lambda one: one.taken_at, reverse=True):
        if not any(_covers(later, each) for later in kept):
            kept.append(each)
    return replace(scope, earlier=tuple(kept))


def _covers(later: UnitScope, one: UnitScope) -> bool:
    return (
        later.window.start <= one.window.start
        and one.window.end <= later.window.end
        and later.max_pending <= one.max_pending
        and _target_ends(later) == _target_ends(one)
        and [each.flow for each in later.flows] == [each.flow for each in one.flows]
    )


def _target_ends(scope: UnitScope) -> dict[int, int]:
    return {each.partition: each.end for each in scope.partitions}


def compute_stated_bounds(outcome: UnitOutcome, sample: Sample) -> tuple[StatedBound, ...]:
    """Bounds of loss and duplication per record, of broken affinity and order per key and record.

    In a census both bounds are the rate. Records without a key have only loss and duplication.
    """
    return (*_record_bounds(outcome, sample), *_key_bounds(outcome, sample))


def _record_bounds(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    rates = record_rates(outcome.counts, outcome.copied_again, census=sample.census)
    lost, overdue = (outcome.counts.get(verdict, 0) for verdict in ABSENT)
    if rate := rates.get(Verdict.LOST):
        counted = f"{lost:,} lost" + (f", {overdue:,} overdue" if overdue else "")
        sentence = statement("loss", *rate, counted=counted, census=sample.census)
        yield _rate_bound("loss", rate, sentence, sample)
    if rate := rates.get(Verdict.DUPLICATE):
        counted = f"{rate.events:,} copied again"
        sentence = statement("duplication", *rate, counted=counted, census=sample.census)
        yield _rate_bound("duplication", rate, sentence, sample)


def _key_bounds(outcome: UnitOutcome, sample: Sample) -> Iterator[StatedBound]:
    affinity, census = outcome.affinity, sample.census
    if not affinity.keys:
        return
    # The salt as seed: the same sample gives the same bounds.
    moved = moved_rate(affinity, census=census, seed=sample.salt)
    yield from _key_property_bounds(_AFFINITY, affinity.keys_split, affinity.keys, moved, sample)
    if outcome.order_judged:
        disorder = disorder_rate(affinity, census=census, seed=sample.salt)
        yield from _key_property_bounds(
            _ORDER, affinity.keys_disordered, affinity.keys, disorder, sample
        )


class _KeyProperty(NamedTuple):
    """A property of keys that can be broken, and its terms."""

    name: str
    noun: str
    """For keys."""
    of_records: str
    noun_of_records: str
    none: str


_AFFINITY: Final = _KeyProperty(
    "broken affinity", "split", "copies in another partition than their key", "copies", "none moved"
)

_ORDER: Final = _KeyProperty(
    "broken order",
    "out of order",
    "records out of order within their key",
    "out of order",
    "none out of order",
)


def _key_property_bounds(
    key_property: _KeyProperty, broken: int, keys: int, rate: KeyRate | None, sample: Sample
) -> Iterator[StatedBound]:
    sentence = statement(
        key_property.name,
        broken,
        keys,
        counted=f"{broken:,} {key_property.noun}",
        census=sample.census,
        of="key",
    )
    if rate is None:
        yield _rate_bound(key_property.name, Rate(broken, keys), sentence, sample)
        return
    nothing_seen = not rate.events and not rate.census
    if nothing_seen:
        # Without an event there is no interval for records, only for keys.
        sentence += f"; of their {plural(rate.records, 'record')}, {key_property.none}"
    yield _rate_bound(key_property.name, Rate(broken, keys), sentence, sample)
    if not nothing_seen:
        yield _per_record(key_property, rate)


def _per_record(key_property: _KeyProperty, rate: KeyRate) -> StatedBound:
    counted = Interval(rate.rate, rate.rate)
    known = counted if rate.census else rate.interval or Interval(0.0, 1.0)
    sentence = rate_statement(key_property.of_records, rate, noun=key_property.noun_of_records)
    return StatedBound(key_property.of_records, known.lower, known.upper, sentence)


def _rate_bound(name: str, rate: Rate, sentence: str, sample: Sample) -> StatedBound:
    bound = rate.interval(census=sample.census)
    return StatedBound(name, bound.lower, bound.upper, sentence)
