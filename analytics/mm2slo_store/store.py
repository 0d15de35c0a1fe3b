"""The results store: one object, opened and closed, that publishes runs and answers for them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, insert, select, update

from mm2slo_core.errors import UserError
from mm2slo_store import exclusions, leases, reading, schema
from mm2slo_store.address import address_of
from mm2slo_store.conversion import failed_row, header_row
from mm2slo_store.digests import Digests
from mm2slo_store.engine import engine_for
from mm2slo_store.failures import told
from mm2slo_store.migrating import bring_up_to_date
from mm2slo_store.publishing import numbered, publish
from mm2slo_store.reading import RunFilter, UnitFilter
from mm2slo_store.rows import RunState
from mm2slo_store.sli_history.methods import SliHistory
from mm2slo_store.sqlite_file import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from sqlalchemy import Connection

    from mm2slo_core.audit.outcome import UnitOutcome
    from mm2slo_core.audit.scope import Window
    from mm2slo_core.audit.verdict import Verdict
    from mm2slo_core.objectives.exclusion import Exclusion, Span
    from mm2slo_core.topology import Flow
    from mm2slo_store.rows import (
        AuditRun,
        Completion,
        OpenRecord,
        Published,
        Run,
        RunDirectory,
        RunHeader,
        RunPlace,
        StoredEvidence,
        StoredUnit,
        UnitKey,
    )

LEASE_MS: Final = 60_000
_RENEWALS: Final = 3
"""Per life of a lease: one may fail."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Store(SliHistory, Digests):
    """An open store. Safe to use from several threads; many processes may share one.

    Every method raises UserError when the database refuses; what it was writing is then undone.
    Get one from `Store.open`.
    """

    @classmethod
    @contextmanager
    def open(
        cls, url_or_path: str | Path, *, clock: Callable[[], int] = _now_ms
    ) -> Iterator[Store]:
        """Open a store, making it or bringing its schema up to date where needed.

        *url_or_path* is a path or `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE` (extra
        `postgres`); *clock* gives epoch ms. Raises UserError, the store untouched, when there can
        be none there, it is corrupt, of another program or of a newer version, or cannot be
        written or reached.
        """
        address = address_of(url_or_path)
        engine = engine_for(address)
        try:
            with told(address):
                if address.file is not None:
                    prepare(address.file)
                bring_up_to_date(engine, address)
            yield cls(engine, address, clock)
        finally:
            engine.dispose()

    def announce(self, header: RunHeader) -> None:
        """Say that a run has started; it shows as running until it is published or fails.

        Runs that say so of themselves, but hold no lease that is alive, have died: they become
        failed. Take a lease first.
        """
        now = self._clock()
        alive = select(schema.leases.c.holder).where(schema.leases.c.expires_at > now)
        died = (schema.runs.c.state == RunState.RUNNING.value) & schema.runs.c.id.not_in(alive)
        with self._writing() as connection:
            connection.execute(
                update(schema.runs)
                .where(died)
                .values(
                    state=RunState.FAILED.value,
                    verdict_line="the run ended without saying so; it stored nothing",
                )
            )
            self._replace_run(connection, header, header_row(header, RunState.RUNNING))

    def fail(self, header: RunHeader, why: str) -> None:
        """Say that a run ended without a result; what is stored of its windows stays."""
        with self._writing() as connection:
            self._replace_run(connection, header, failed_row(header, self._clock(), why))

    def publish(self, run: AuditRun) -> Published:
        """Store a finished run in one transaction, in place of what it replaces.

        A judged unit replaces those of the same target topic, flow set and window; one that was
        not audited replaces only those that were not audited either. Runs that have no unit left
        go, too. Publishing one run twice is publishing it once.

        Raises LeaseLostError when another run than this one holds a live lease on a judged topic;
        ValueError when *run* has two units of one key.
        """
        units = numbered(run)
        with self._writing() as connection:
            return publish(connection, run, units, self._clock())

    def runs(
        self,
        *,
        flow: Flow | None = None,
        state: RunState | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """Runs, newest first; those behind the place *after*."""
        wanted = RunFilter(flow=flow, state=state, after=after)
        with self._reading() as connection:
            return reading.runs(connection, wanted, limit=limit)

    def runs_of(self, run_ids: Collection[str]) -> tuple[Run, ...]:
        """Those of *run_ids* that are there, newest first."""
        with self._reading() as connection:
            return reading.runs_of(connection, run_ids)

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        """How many runs there are in each state."""
        with self._reading() as connection:
            return reading.count_runs(connection, RunFilter(flow=flow))

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        """The newest finished run of each of *flows* that has one, in their order."""
        with self._reading() as connection:
            return reading.newest_finished(connection, flows)

    def run(self, run_id: str) -> Run:
        """One run. Raises UserError when there is none of that id."""
        with self._reading() as connection:
            found = reading.runs(connection, RunFilter(run_id=run_id))
        if not found:
            raise UserError(f"the store {self.shown} holds no run {run_id}: it may be replaced")
        return found[0]

    def units(
        self,
        *,
        run_id: str | None = None,
        flow: Flow | None = None,
        target_topic: str | None = None,
        overlapping: Window | None = None,
        judged: bool | None = None,
    ) -> tuple[StoredUnit, ...]:
        """Summaries of units, in order of window, topic and run."""
        wanted = UnitFilter(run_id, None, flow, target_topic, overlapping, judged)
        with self._reading() as connection:
            return reading.units(connection, wanted)

    def outcome(self, run_id: str, unit: int) -> UnitOutcome:
        """All that was published of a judged unit. Raises UserError when there is no such one."""
        with self._reading() as connection:
            found = reading.outcome(connection, run_id, unit)
        if found is None:
            raise UserError(f"the store {self.shown} holds no judged unit {unit} of run {run_id}")
        return found

    def evidence(
        self,
        *,
        run_id: str | None = None,
        unit: int | None = None,
        flow: Flow | None = None,
        target_topic: str | None = None,
        verdicts: Collection[Verdict] = (),
        limit: int | None = None,
        start: int = 0,
    ) -> tuple[StoredEvidence, ...]:
        """Anomalies of units, without the first *start*; *verdicts* empty: all."""
        wanted = UnitFilter(run_id, unit, flow, target_topic)
        with self._reading() as connection:
            return reading.evidence(connection, wanted, verdicts=verdicts, limit=limit, start=start)

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        """Of how many anomalies of each verdict each unit of a run has evidence."""
        with self._reading() as connection:
            return reading.count_evidence(connection, run_id)

    def directories(self, run_id: str | None = None) -> tuple[RunDirectory, ...]:
        """The run directories that the store refers to."""
        with self._reading() as connection:
            return reading.directories(connection, run_id)

    def completion(self, flow: Flow, target_topic: str) -> Completion | None:
        """How far a topic is complete; None: never judged. See `completing.advanced`."""
        with self._reading() as connection:
            return reading.completion(connection, flow, target_topic)

    def prior_open_evidence(self, key: UnitKey, window: Window) -> frozenset[OpenRecord]:
        """Source records of *window* that stored runs called lost, overdue or late.

        Those that are matched now are late; from evidence, which is capped.
        """
        with self._reading() as connection:
            return reading.once_open(connection, key, window)

    @contextmanager
    def lease(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> Iterator[leases.Lease]:
        """Hold a target topic for the run *holder*; renewed by a thread, given back at the end.

        Raises LeaseHeldError at once when another run holds it and it has not expired.
        """
        self.acquire(target_cluster, target_topic, holder=holder, ttl_ms=ttl_ms)
        kept = leases.Lease(
            lambda: self.renew(target_cluster, target_topic, holder=holder, ttl_ms=ttl_ms),
            ttl_ms / 1000 / _RENEWALS,
        )
        try:
            yield kept
        finally:
            kept.end()
            self.release(target_cluster, target_topic, holder=holder)

    def acquire(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> None:
        """Take a lease that is free, expired or held by *holder*. Raises LeaseHeldError otherwise."""
        now = self._clock()
        with self._writing() as connection:
            owner, until = leases.acquire(
                connection, target_cluster, target_topic, holder, now=now, ttl_ms=ttl_ms
            )
        if owner != holder:
            raise leases.LeaseHeldError(target_topic, owner, until - now)

    def renew(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> bool:
        """Extend a lease; False when another has taken it over."""
        with self._writing() as connection:
            return leases.renew(
                connection, target_cluster, target_topic, holder, now=self._clock(), ttl_ms=ttl_ms
            )

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Give a lease back; False when another has taken it over, which changes nothing."""
        with self._writing() as connection:
            return leases.release(connection, target_cluster, target_topic, holder)

    def add_exclusion(self, exclusion: Exclusion) -> None:
        """Keep planned maintenance. Raises UserError when there is one of its id already."""
        with self._writing() as connection:
            added = exclusions.add(connection, exclusion)
        if not added:
            raise UserError(f"the store {self.shown} holds an exclusion {exclusion.id} already")

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Write down that *who* removes it now; gives it as it is then.

        Raises UserError when there is none of that id, or it is removed already.
        """
        with self._writing() as connection:
            removed = exclusions.remove(connection, exclusion_id, who=who, now=self._clock())
            found = exclusions.find(connection, exclusion_id)
        if found is None:
            raise self._no_exclusion(exclusion_id)
        if not removed:
            raise UserError(
                f"the exclusion {exclusion_id} was removed before, by {found.removed_by}"
            )
        return found

    def note_silence(self, exclusion_id: str, silence: str | None) -> None:
        """Keep the id of an exclusion's silence. Raises UserError when there is no exclusion."""
        with self._writing() as connection:
            noted = exclusions.note_silence(connection, exclusion_id, silence)
        if not noted:
            raise self._no_exclusion(exclusion_id)

    def exclusions(
        self, *, flow: Flow | None = None, overlapping: Span | None = None
    ) -> tuple[Exclusion, ...]:
        """Planned maintenance in order of its start, removed ones as well.

        *overlapping* compares with the times as they were planned.
        """
        with self._reading() as connection:
            return exclusions.listed(connection, flow=flow, overlapping=overlapping)

    def _no_exclusion(self, exclusion_id: str) -> UserError:
        return UserError(
            f"the store {self.shown} holds no exclusion {exclusion_id}: "
            "`mm2slo exclude list --all` shows those that it holds"
        )

    @staticmethod
    def _replace_run(connection: Connection, header: RunHeader, row: dict[str, object]) -> None:
        connection.execute(delete(schema.runs).where(schema.runs.c.id == header.id))
        connection.execute(insert(schema.runs), row)
